#include "engine/export_model.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/new_file.hpp"
#include "base/shell.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/weights_match.hpp"
#include "device/repeated_elements.hpp"
#include "graph/initial_values.hpp"
#include "graph/model_copy.hpp"
#include "graph/model_files.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// One file of the plan's model: the model, or that of a stage.
struct Part {
    std::string prefix;     ///< in front of its names: "lower." for a stage's file
    std::string file_name;  ///< in a folder of several
    std::shared_ptr<const Archive> archive;
};

/// In the order of the joined model: the model's own parameters, then the stages'.
std::vector<Part> parts_of(const Plan& plan, const ModelFiles& files) {
    std::vector<Part> parts;
    if (files.model) parts.push_back({"", "model.pt", files.model});
    for (size_t stage = 0; stage < files.stages.size(); ++stage) {
        const std::string& name = plan.pipeline.stages[stage].name;
        if (files.stages[stage]) parts.push_back({name + ".", name + ".pt", files.stages[stage]});
    }
    return parts;
}

/// Where each part's TorchScript goes.
std::vector<std::unique_ptr<NewFile>> torchscript_files(const std::vector<Part>& parts, const ExportRequest& request) {
    std::vector<std::unique_ptr<NewFile>> files;
    if (request.torchscript.empty()) return files;
    if (parts.size() == 1 && parts.front().prefix.empty()) {
        files.push_back(std::make_unique<NewFile>(request.torchscript, request.overwrite));
        return files;
    }
    std::error_code error;
    fs::create_directories(request.torchscript, error);
    if (error || !fs::is_directory(request.torchscript)) {
        throw Error(ErrorKind::Output,
                    "the stages of this plan have files of their own, so --torchscript names a "
                    "folder, and " +
                        request.torchscript + " cannot be one" + (error ? ": " + error.message() : "; name another"));
    }
    std::vector<std::string> names;
    for (const Part& part : parts) {
        if (!is_plain_name(part.file_name) || std::ranges::count(names, part.file_name) > 0) {
            throw Error(ErrorKind::Plan, "the stage name '" + printable(part.file_name) + "' cannot name a file of " +
                                             request.torchscript + "; choose another");
        }
        names.push_back(part.file_name);
        files.push_back(std::make_unique<NewFile>(fs::path(request.torchscript) / part.file_name, request.overwrite));
    }
    return files;
}

fs::path output_place(const std::string& output) {
    std::error_code error;
    const fs::path place = fs::weakly_canonical(fs::absolute(output), error);
    return error ? fs::path(output) : place;
}

/// Both would be written, and one of them lost.
void check_apart(const std::vector<Part>& parts, const ExportRequest& request) {
    if (request.safetensors.empty() || request.torchscript.empty()) return;
    const fs::path one = output_place(request.safetensors), other = output_place(request.torchscript);
    const bool is_in_folder =
        std::ranges::any_of(parts, [&](const Part& part) { return one == other / part.file_name; });
    if (one != other && !is_in_folder) return;
    throw Error(ErrorKind::CommandLine,
                "--safetensors and --torchscript both write " + printable(request.safetensors) + "; name two files");
}

/// Where the weights come from; nothing: from the model's files themselves.
std::optional<fs::path> choose_source(const Plan& plan, const ExportRequest& request, const Logger& log) {
    if (request.initial_weights) {
        if (plan.model.init_from.empty()) return std::nullopt;
        return plan.model.init_from;
    }
    if (!request.checkpoint.empty()) return request.checkpoint;
    std::vector<std::string> skipped;
    const auto newest = CheckpointStore(plan.run.dir).newest_verified(skipped);
    for (const std::string& reason : skipped) log->warn("checkpoint skipped: " + reason);
    if (newest) return newest;
    throw Error(ErrorKind::MissingInput, "there is no checkpoint in " + plan.run.dir +
                                             "; train first, name one with --checkpoint, or export what a training "
                                             "begins with: --initial-weights");
}

/// A part in memory, and the names that its weights have in checkpoints.
struct LoadedPart {
    ModelCopy model;
    std::vector<WantedWeight> weights;
};

std::vector<LoadedPart> load_parts(const std::vector<Part>& parts) {
    std::vector<LoadedPart> loaded;
    for (const Part& part : parts) {
        loaded.push_back({ModelCopy(part.archive), {}});
        for (const ModelWeight& weight : loaded.back().model.weights()) {
            WantedWeight wanted{{part.prefix + weight.name},
                                from_torch(weight.tensor.scalar_type()),
                                weight.tensor.sizes().vec(),
                                weight.is_buffer};
            for (const std::string& alias : weight.aliases) wanted.names.push_back(part.prefix + alias);
            loaded.back().weights.push_back(std::move(wanted));
        }
    }
    return loaded;
}

/// As a training begins, before the weights of a file go over it.
/// Throws Error{Plan} for what has no numbers then, where no file follows.
void fill_from_seed(std::vector<LoadedPart>& parts, const Plan& plan) {
    std::vector<std::string> unfilled;
    for (LoadedPart& part : parts) {
        for (size_t i = 0; i < part.weights.size(); ++i) {
            const ModelWeight& weight = part.model.weights()[i];
            WantedWeight& wanted = part.weights[i];
            const std::string& name = wanted.names.front();
            const InitRule* rule =
                weight.is_buffer ? nullptr
                                 : rule_for(plan.model.init, name, {wanted.names.begin() + 1, wanted.names.end()});
            if (!rule && !weight.has_data) unfilled.push_back(name);
            if (weight.is_buffer) continue;
            wanted.seed_fill = rule ? SeedFill::Named : SeedFill::IfNamed;
            if (rule) at::Tensor(weight.tensor).copy_(filled(weight.tensor, *rule, plan.train.seed, name));
        }
    }
    if (plan.model.init_from.empty()) refuse_without_values(plan, unfilled);
}

void fill(std::vector<LoadedPart>& parts, const WeightsFile& source, const Logger& log) {
    std::vector<WantedWeight> wanted;
    for (const LoadedPart& part : parts) wanted.insert(wanted.end(), part.weights.begin(), part.weights.end());
    // A checkpoint has all of its model. Other tools leave constants out.
    if (source.checkpoint()) std::ranges::for_each(wanted, [](WantedWeight& weight) { weight.may_be_absent = false; });
    const MatchedWeights matched = match_weights(source, wanted);
    for (const std::string& note : matched.notes) log->info(note);
    if (!matched.extra.empty()) log->warn("not in the model, so not exported: " + names_text(matched.extra));
    if (!matched.seeded.empty()) log->info("as [[model.init]] fills them: " + names_text(matched.seeded));
    if (!matched.absent.empty()) log->warn("as the model file has them: " + names_text(matched.absent));
    auto value = matched.values.begin();
    for (LoadedPart& part : parts) {
        for (const ModelWeight& weight : part.model.weights()) {
            const std::optional<TensorBytes>& found = *value++;
            if (!found) continue;
            const at::Tensor read = at::empty(found->shape, weight.tensor.options().dtype(to_torch(found->dtype)));
            if (!found->bytes.empty()) {
                std::memcpy(read.mutable_data_ptr(), found->bytes.data(), found->bytes.size());
            }
            take_values(weight.tensor, read, weight.name);
        }
    }
}

/// Publishes what was written, and says how large it is.
ExportedFile publish(NewFile& file) {
    const uint64_t size_bytes = fs::file_size(file.temporary());
    file.publish();
    return {file.path(), size_bytes};
}

std::vector<std::string> names_of(const std::vector<LoadedPart>& parts) {
    std::vector<std::string> names;
    for (const LoadedPart& part : parts) {
        for (const WantedWeight& weight : part.weights) {
            names.insert(names.end(), weight.names.begin(), weight.names.end());
        }
    }
    return names;
}

/// "m.", where that stands before each name; else "".
std::string wrapper_prefix(const std::vector<std::string>& names) {
    if (names.empty()) return "";
    const std::string prefix = names.front().substr(0, names.front().find('.') + 1);
    const bool is_before_all =
        std::ranges::all_of(names, [&](const std::string& name) { return name.starts_with(prefix); });
    return is_before_all ? prefix : "";
}

/// What the names leave out in front, whole components. Without a wish for it, what could be is said.
std::string stripped_prefix(const std::vector<LoadedPart>& parts, const ExportRequest& request, const Logger& log) {
    if (request.safetensors.empty()) return "";
    std::vector<std::string> names = names_of(parts);
    if (request.strip_prefix.empty()) {
        const std::string prefix = wrapper_prefix(names);
        if (!prefix.empty()) {
            log->info("all names begin with '" + printable(prefix) + "', as a wrapper's do; --strip-prefix " +
                      shell_quoted(prefix) + " writes them as the model inside knows them");
        }
        return "";
    }
    const std::string prefix = request.strip_prefix + (request.strip_prefix.ends_with('.') ? "" : ".");
    std::erase_if(names, [&](const std::string& name) { return name.starts_with(prefix); });
    if (names.empty()) return prefix;
    throw Error(ErrorKind::CommandLine, "--strip-prefix " + printable(request.strip_prefix) +
                                            ": these names do not begin with it: " + names_text(names));
}

void write_safetensors_of(const std::vector<LoadedPart>& parts, const std::map<std::string, std::string>& facts,
                          const std::string& prefix, const NewFile& file) {
    const auto named = [&](const std::string& name) { return name.substr(prefix.size()); };
    std::vector<at::Tensor> contiguous;  // keeps the bytes alive
    std::vector<TensorBytes> tensors;
    WeightsNotes notes{facts, {}};
    for (const LoadedPart& part : parts) {
        for (size_t i = 0; i < part.weights.size(); ++i) {
            const WantedWeight& weight = part.weights[i];
            contiguous.push_back(part.model.weights()[i].tensor.contiguous());
            const at::Tensor& tensor = contiguous.back();
            tensors.push_back({named(weight.names.front()),
                               weight.dtype,
                               weight.shape,
                               {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
            for (size_t other = 1; other < weight.names.size(); ++other) {
                notes.aliases[named(weight.names[other])] = named(weight.names.front());
            }
        }
    }
    write_weights(file.temporary(), tensors, notes);
}

void write_torchscript_of(const ModelCopy& model, const NewFile& file) {
    OutputFile out(file.temporary());
    model.write([&](std::span<const std::byte> bytes) { out.write(bytes); });
    out.finish();
}

}  // namespace

ExportReport export_model(const Plan& plan, const ExportRequest& request, const Logger& log) {
    const ModelFiles files = open_model_files(plan);
    const std::vector<Part> parts = parts_of(plan, files);
    check_apart(parts, request);
    std::optional<NewFile> safetensors;
    if (!request.safetensors.empty()) safetensors.emplace(request.safetensors, request.overwrite);
    const auto torchscript = torchscript_files(parts, request);

    std::vector<LoadedPart> loaded = load_parts(parts);
    const std::string prefix = stripped_prefix(loaded, request, log);
    if (request.initial_weights) fill_from_seed(loaded, plan);
    ExportReport report;
    for (const LoadedPart& part : loaded) report.num_tensors += static_cast<int64_t>(part.weights.size());
    std::map<std::string, std::string> facts;
    const auto path = choose_source(plan, request, log);
    report.source = path ? path->string() : file_names(files);
    if (path) {
        const WeightsFile source(*path);
        source.verify();
        fill(loaded, source, log);
        report.step = source.step().value_or("");
        if (const CheckpointReader* checkpoint = source.checkpoint()) {
            facts["samples"] = std::to_string(checkpoint->manifest().state.samples);
        }
        if (!report.step.empty()) facts["step"] = report.step;
    }

    if (safetensors) {
        write_safetensors_of(loaded, facts, prefix, *safetensors);
        report.files.push_back(publish(*safetensors));
    }
    for (size_t i = 0; i < torchscript.size(); ++i) {
        write_torchscript_of(loaded[i].model, *torchscript[i]);
        report.files.push_back(publish(*torchscript[i]));
    }
    return report;
}

}  // namespace vpp
