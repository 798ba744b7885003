#include "graph/torchscript.hpp"
#include "graph/lost_renorms.hpp"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <limits>
#include <regex>
#include <set>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/units.hpp"
#include "device/repeated_elements.hpp"
#include "graph/autocast.hpp"
#include "graph/graph_builder.hpp"
#include "graph/input_forms.hpp"
#include "graph/jit_executable.hpp"
#include "graph/jit_freeze.hpp"
#include "graph/jit_graph.hpp"
#include "graph/jit_load.hpp"
#include "graph/jit_mode_notes.hpp"
#include "graph/jit_numbers.hpp"
#include "graph/jit_parameters.hpp"
#include "graph/jit_stages.hpp"
#include "graph/module_modes.hpp"
#include "graph/probe.hpp"
#include "graph/stage_borders.hpp"

namespace vpp {

namespace {

/// Gives parameters their bytes: finds the record of a tensor's storage among all files.
class WeightStore {
  public:
    explicit WeightStore(std::vector<LoadedFile> files) : files_(std::move(files)) {}

    /// The tensor over the mapped bytes, not compared, not copied.
    at::Tensor mapped(const JitParameter& parameter) const {
        const at::Tensor& tensor = parameter.tensor;
        if (tensor.numel() == 0) return tensor.detach().clone();
        const Place place = place_of(parameter);
        const auto is_negative = [](int64_t number) { return number < 0; };
        const auto has_negative = [&](at::IntArrayRef numbers) { return std::ranges::any_of(numbers, is_negative); };
        const int64_t offset = tensor.storage_offset();
        if (offset < 0 || has_negative(tensor.sizes()) || has_negative(tensor.strides())) {
            damaged(parameter, "it has a negative offset, size or stride");
        }
        if (static_cast<uint64_t>(offset) > place.record.size_bytes) damaged(parameter, "its record is too short");
        const uint64_t needed = static_cast<uint64_t>(tensor.storage_offset()) * tensor.itemsize() +
                                at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
        if (needed > place.record.size_bytes) damaged(parameter, "its record is too short");
        std::byte* data = place.archive.bytes().data() + place.record.offset +
                          static_cast<size_t>(tensor.storage_offset()) * tensor.itemsize();
        return at::from_blob(data, tensor.sizes(), tensor.strides(), tensor.options());
    }

    /// Compared and copied. The pages of the map are given back, or each weight would be in memory twice.
    at::Tensor copy(const JitParameter& parameter) const {
        if (parameter.tensor.numel() == 0) return mapped(parameter).clone();
        const Place place = place_of(parameter);
        place.archive.check_stored(place.record.name, place.record.offset);
        const at::Tensor stored = mapped(parameter);
        at::Tensor tensor = parameter.is_buffer ? copy_with_repeats(stored, at::kCPU) : stored.clone();
        place.archive.forget(place.record.offset, place.record.size_bytes);
        return tensor;
    }

    /// Gives back the pages of all files that were read so far.
    void forget() const {
        for (const LoadedFile& file : files_) file.archive->forget(0, file.archive->bytes().size());
    }

  private:
    struct Place {
        const Archive& archive;
        const WeightRecord& record;
    };

    Place place_of(const JitParameter& parameter) const {
        const void* storage = parameter.tensor.storage().data();
        for (const LoadedFile& file : files_) {
            const auto found = std::find_if(file.records.begin(), file.records.end(),
                                            [&](const WeightRecord& record) { return record.destination == storage; });
            if (found != file.records.end()) return {*file.archive, *found};
        }
        damaged(parameter, "it has no record of its own in the file");
    }

    [[noreturn]] void damaged(const JitParameter& parameter, const std::string& what) const {
        const std::string file = files_.size() == 1 ? files_.front().archive->path().string() + ": " : "";
        throw Error(ErrorKind::BadData, file + "the weight '" + parameter.name + "' cannot be read: " + what);
    }

    std::vector<LoadedFile> files_;
};

class TorchScriptSource : public Source {
  public:
    TorchScriptSource(torch::jit::Module model, JitGraph jit, JitValues values, WeightStore weights, InitialValues init)
        : model_(std::move(model)),
          jit_(std::move(jit)),
          values_(std::move(values)),
          weights_(std::move(weights)),
          init_(std::move(init)) {}

    std::unique_ptr<Executable> executable(const OpSelection& selection, at::Device device) override {
        std::vector<torch::jit::Value*> inputs, outputs;
        for (int value : selection.live_ins) inputs.push_back(values_.at(static_cast<size_t>(value)));
        for (int parameter : selection.parameters) {
            inputs.push_back(jit_.parameters.at(static_cast<size_t>(parameter)).value);
        }
        for (int value : selection.live_outs) outputs.push_back(values_.at(static_cast<size_t>(value)));
        return compile_ops(jit_, selection.ops, inputs, outputs, device, jit_.modes.autocast);
    }

    at::Tensor weight(int parameter) override {
        const JitParameter& entry = jit_.parameters.at(static_cast<size_t>(parameter));
        return first_value(entry).set_requires_grad(entry.tensor.requires_grad());
    }

  private:
    at::Tensor first_value(const JitParameter& entry) {
        const InitRule* rule = entry.is_buffer ? nullptr : rule_for(init_.rules, entry.name, entry.aliases);
        if (rule) return filled(entry.tensor, *rule, init_.seed, entry.name);
        if (has_data(entry.tensor, entry.is_buffer)) return weights_.copy(entry);
        // To be read from a checkpoint. Where nobody does, every loss is to say so.
        return at::full(entry.tensor.sizes(), std::numeric_limits<double>::quiet_NaN(), entry.tensor.options());
    }

    torch::jit::Module model_;  ///< owns the types that the graph refers to
    JitGraph jit_;
    JitValues values_;
    WeightStore weights_;
    InitialValues init_;
};

/// "tokens, targets".
std::string field_names(const TorchScriptOptions& options) {
    std::string names;
    for (const Field& field : options.fields.fields) names += (names.empty() ? "" : ", ") + field.name;
    return names;
}

/// Whether an argument of the type may be given a tensor.
bool takes_tensor(const c10::Type& type) {
    return c10::TensorType::get()->isSubtypeOf(type);
}

/// Names forward's arguments: the plan's list, else the arguments' own names. Arguments behind the list get their
/// defaults.
void bind_inputs(JitGraph& jit, const torch::jit::Module& model, const TorchScriptOptions& options) {
    const auto& arguments = model.get_method("forward").function().getSchema().arguments();
    const size_t num_arguments = arguments.size() - 1;  // without self
    std::vector<size_t> bound_to_default;
    for (size_t i = 0; i < num_arguments; ++i) {
        const c10::Argument& argument = arguments[i + 1];
        const bool listed = i < options.inputs.size();
        const std::string field = listed ? options.inputs[i] : argument.name();
        const bool takes_field = takes_tensor(*argument.type());
        const bool wanted = listed || (options.inputs.empty() && takes_field && options.fields.find(field) >= 0);
        if (!wanted && argument.default_value()) {
            bound_to_default.push_back(i);
            continue;
        }
        if (!takes_field) {
            throw Error(ErrorKind::BadData, "forward's argument '" + argument.name() + "' is a " +
                                                argument.type()->annotation_str() +
                                                ", and data fields are tensors; let forward take a tensor for each "
                                                "field, and give what is none a default");
        }
        if (options.fields.find(field) < 0) {
            throw Error(ErrorKind::BadData, "forward's argument '" + argument.name() + "' would be the data field '" +
                                                field +
                                                "', which the data does not have (it has: " + field_names(options) +
                                                "); set model.inputs to the fields in the order of the arguments");
        }
        jit.inputs.push_back({field, jit.graph->inputs()[i]});
        jit.graph->inputs()[i]->setType(c10::TensorType::get());
    }
    if (options.inputs.size() > num_arguments) {
        throw Error(ErrorKind::BadData, "model.inputs names " + std::to_string(options.inputs.size()) +
                                            " fields, but forward takes " + std::to_string(num_arguments));
    }
    for (auto it = bound_to_default.rbegin(); it != bound_to_default.rend(); ++it) {
        bind_default(*jit.graph, *it, *arguments[*it + 1].default_value());
    }
}

std::vector<ProbeInput> probe_inputs(const JitGraph& jit, const TorchScriptOptions& options) {
    std::vector<ProbeInput> inputs;
    for (const JitInput& input : jit.inputs) {
        const int field = options.fields.find(input.name);
        if (field < 0) {  // forward's arguments are bound: it is the loss's
            std::vector<std::string> known;
            for (const Field& one : options.fields.fields) known.push_back(one.name);
            throw Error(ErrorKind::Plan,
                        {Problem{"loss.target = '" + printable(input.name) + "' is no field of the data (they have " +
                                     field_names(options) + ")" + did_you_mean(input.name, known),
                                 options.where("loss.target")}});
        }
        inputs.push_back({input.value, options.fields.fields[static_cast<size_t>(field)]});
        if (!options.read_samples) continue;
        inputs.back().read = [&options, field](std::span<std::byte> out) { options.read_samples(field, out); };
    }
    return inputs;
}

/// "2 samples of tokens int64[16], label int64[]".
std::string samples_text(const std::vector<ProbeInput>& inputs, int64_t microbatch_size) {
    std::string text = counted_text(microbatch_size, "sample");
    for (size_t i = 0; i < inputs.size(); ++i) {
        const Field& field = inputs[i].field;
        text += (i == 0 ? " of " : ", ") + printable(field.name) + ' ' + std::string(name_of(field.dtype)) +
                shape_text(field.shape);
    }
    return text;
}

/// The numbers that ops of the model are given, as those of a traced model are given the sizes that it saw.
void add_numbers(const torch::jit::Block& block, std::set<int64_t>& numbers) {
    for (const torch::jit::Node* node : block.nodes()) {
        const auto value = node->kind() == c10::prim::Constant ? torch::jit::toIValue(node->output()) : std::nullopt;
        if (value && value->isInt()) numbers.insert(value->toInt());
        if (value && value->isIntList()) {
            const std::vector<int64_t> list = value->toIntVector();
            numbers.insert(list.begin(), list.end());
        }
        for (const torch::jit::Block* inner : node->blocks()) add_numbers(*inner, numbers);
    }
}

/// The whole numbers in a text.
std::set<int64_t> numbers_in(const std::string& text) {
    static const std::regex kNumber("[0-9]{1,9}");
    std::set<int64_t> numbers;
    for (std::sregex_iterator found(text.begin(), text.end(), kNumber), end; found != end; ++found) {
        numbers.insert(std::stoll(found->str()));
    }
    return numbers;
}

/// " 'h' [1, 2, 8]": a buffer with a dimension of one of these sizes among others; empty where there is none.
std::string buffer_of_size(const JitGraph& jit, const std::vector<int64_t>& sizes) {
    for (const JitParameter& parameter : jit.parameters) {
        const bool has_size = std::ranges::any_of(parameter.tensor.sizes(), [&](int64_t extent) {
            return extent > 1 && std::ranges::find(sizes, extent) != sizes.end();
        });
        if (parameter.is_buffer && parameter.value && parameter.tensor.dim() > 1 && has_size) {
            return " '" + printable(parameter.name) + "' " + shape_text(parameter.tensor.sizes().vec());
        }
    }
    return "";
}

/// What to do where other microbatches are taken. `named`: numbers of the model's ops.
std::string size_advice(const JitGraph& jit, const std::set<int64_t>& named, const std::vector<int64_t>& sizes) {
    if (const std::string buffer = buffer_of_size(jit, sizes); !buffer.empty()) {
        return "; the buffer" + buffer +
               " has that size: choose train.global_batch_size = that size x pipeline.num_microbatches x mesh.dp, or "
               "make the buffer for another";
    }
    if (std::ranges::any_of(sizes, [&](int64_t size) { return size > 1 && named.contains(size); })) {
        return "; it was probably traced with that size: choose train.global_batch_size = that size x "
               "pipeline.num_microbatches x mesh.dp, or script the model instead";
    }
    return ", where the shapes happen to agree; no op of the model names such a size, so look at this one first: it "
           "may mix samples";
}

/// Probes with the plan's size; when that fails and another form of the data or size works, says which. Those sizes are
/// tried that the model or the failure names, and one sample; where shapes are what fails, by shapes alone: a large
/// model has large values.
ProbeResult probe_or_advise(const JitGraph& jit, const std::vector<ProbeInput>& inputs,
                            const TorchScriptOptions& options, const std::function<at::Tensor(size_t)>& weight) {
    const int64_t microbatch_size = options.microbatch_size;
    try {
        return probe(jit, inputs, microbatch_size, weight, options.device);
    } catch (const Error& error) {
        const bool by_shapes = dynamic_cast<const FailsAnywhere*>(&error) != nullptr;
        const auto is_taken = [&](const std::vector<ProbeInput>& tried, int64_t size) {
            if (by_shapes) return shapes_fit(jit, tried, size, options.device);
            try {
                probe(jit, tried, size, weight, options.device);
                return true;
            } catch (const Error&) {
                return false;
            }
        };
        const std::string samples = " (with a microbatch of " + samples_text(inputs, microbatch_size) + ")";
        for (const InputForm& form : other_forms(inputs)) {
            if (!is_taken(form.inputs, microbatch_size)) continue;
            throw Error(ErrorKind::BadData, error.what() + samples + form.advice);
        }
        const std::set<int64_t> said = numbers_in(error.what());
        std::set<int64_t> named;
        add_numbers(*jit.graph->block(), named);
        std::vector<int64_t> sizes;
        for (int64_t size : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 128}) {
            const bool is_likely = size == 1 || named.contains(size) || said.contains(size);
            if (is_likely && size != microbatch_size && is_taken(inputs, size)) sizes.push_back(size);
        }
        if (sizes.empty()) throw Error(error.kind(), error.what() + samples);
        std::string taken;
        for (const int64_t size : sizes) taken += (taken.empty() ? "" : ", ") + std::to_string(size);
        throw Error(ErrorKind::BadData, "the model cannot take a microbatch of " + std::to_string(microbatch_size) +
                                            " samples (" + error.what() + "), but it takes " + taken +
                                            size_advice(jit, named, sizes));
    }
}

/// `asks`: what answer_devices gave.
Digest digest_of(const JitGraph& jit, const std::string& asks, const std::vector<LoadedFile>& files) {
    Hasher hasher;
    // Class names and warnings are numbered by counters that depend on what the process loaded before.
    static const std::regex kMangling("\\.___torch_mangle_[0-9]+|\\[warn_id=[0-9]+\\]");
    hasher.add_text(std::regex_replace(jit.graph->toString(/*print_source_locations=*/false), kMangling, ""));
    if (!asks.empty()) hasher.add_text(std::regex_replace(asks, kMangling, ""));
    for (const LoadedFile& file : files) {
        for (const auto& [name, record] : file.archive->records()) {
            if (!name.starts_with("data/") && !name.starts_with("constants/")) continue;
            hasher.add_text(name);
            hasher.add(bytes_of(record.size_bytes));
            hasher.add(bytes_of(record.crc));
        }
    }
    return hasher.digest();
}

void add_modules(Graph& graph, const torch::jit::Module& model) {
    for (const auto& named : model.named_modules()) {
        const auto name = named.value.type()->name();
        graph.modules.push_back({named.name, name ? name->name() : ""});
    }
}

void add_notes(Graph& graph, const JitGraph& jit, const std::string& file) {
    for (const std::string& output : jit.not_kept) {
        graph.warnings.push_back(file + ": forward's " + output + " is no tensor and is left out of the outputs");
    }
}

/// A model whose graph is complete but for the reseeds.
struct OpenedModel {
    torch::jit::Module module;
    JitGraph jit;
    WeightStore weights;
    InitialValues init;
    Digest digest;
};

/// The graph of one model, with its inputs.
torch::jit::Module open_one(JitGraph& jit, const ModelFiles& files, const TorchScriptOptions& options,
                            std::vector<LoadedFile>& loaded) {
    torch::jit::Module model = load_module(files.model, options.trust_sha256, loaded);
    const std::vector<std::string> in_eval_mode = submodules_in_eval_mode(model, false);
    set_module_modes(model, options.training, options.eval_modules, options.where);
    jit.graph = inline_with_labels(model);
    resolve_attributes(jit, model);
    if (options.training) add_module_mode_notes(jit, in_eval_mode, options.eval_modules);
    add_lost_renorms(jit, model);
    bind_inputs(jit, model, options);
    return model;
}

/// Loads what the stages are made of. A file that two stages name is loaded twice: they share no parameters.
StageModules load_stages(const ModelFiles& files, const TorchScriptOptions& options, std::vector<LoadedFile>& loaded) {
    StageModules modules;
    if (files.model) modules.model = load_module(files.model, options.trust_sha256, loaded);
    std::vector<Problem> problems;
    for (size_t stage = 0; stage < files.stages.size(); ++stage) {
        modules.files.emplace_back();
        if (!files.stages[stage]) continue;
        try {
            modules.files.back() = load_module(files.stages[stage], options.trust_sha256, loaded);
            if (!modules.files.back()->find_method("forward")) {
                throw Error(ErrorKind::BadData, files.stages[stage]->path().string() + ": the model file has " +
                                                    no_forward_text(*modules.files.back()));
            }
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::BadData) throw;
            const std::string key = "pipeline.stage[" + std::to_string(stage) + "].file";
            problems.push_back({error.problems().front().message, options.where(key)});
        }
    }
    if (!problems.empty()) throw Error(ErrorKind::BadData, std::move(problems));
    return modules;
}

/// The graph of the joined stages, with its inputs.
torch::jit::Module open_stages(JitGraph& jit, const ModelFiles& files, const TorchScriptOptions& options,
                               std::vector<LoadedFile>& loaded) {
    StageModules modules = load_stages(files, options, loaded);
    const StageTables tables{options.stages, options.fields, options.where};
    jit.notes = unused_parts(modules, tables);
    StageCalls calls;
    std::vector<Problem> problems;
    torch::jit::Module root = make_root(modules, tables, calls, problems);
    check_signatures(calls, tables, problems);
    if (!problems.empty()) throw Error(ErrorKind::Plan, std::move(problems));
    const std::vector<std::string> in_eval_mode = submodules_in_eval_mode(root, true);
    set_module_modes(root, options.training, options.eval_modules, options.where);
    join_stages(jit, root, calls, tables);
    resolve_attributes(jit, root);
    if (options.training) add_module_mode_notes(jit, in_eval_mode, options.eval_modules);
    add_lost_renorms(jit, root);
    for (StagePlan& stage : jit.stages) {
        if (!options.training && !stage.eval_file.empty()) stage.file = stage.eval_file;
    }
    return root;
}

/// What evaluation runs of files of its own has the weights of training's.
void take_weights_of(const ModelFiles& training, JitGraph& jit, const TorchScriptOptions& options,
                     std::vector<LoadedFile>& loaded) {
    const auto load = [&] {
        if (options.stages.empty()) return load_module(training.model, options.trust_sha256, loaded);
        StageModules modules = load_stages(training, options, loaded);
        StageCalls calls;
        std::vector<Problem> problems;
        torch::jit::Module root = make_root(modules, {options.stages, options.fields, options.where}, calls, problems);
        if (!problems.empty()) throw Error(ErrorKind::Plan, std::move(problems));
        return root;
    };
    take_weights(jit.parameters, list_parameters(load()), file_names(*training.evaluation), file_names(training));
}

/// What is wrong with files that evaluation has for itself says so: the keys that it names are those of training too.
template <typename Use>
auto naming_twin(const ModelFiles& files, const TorchScriptOptions& options, const Use& use) {
    if (&files.in_mode(options.training) == &files) return use();
    try {
        return use();
    } catch (const Error& error) {
        std::vector<Problem> problems = error.problems();
        for (Problem& problem : problems) {
            problem.message = "for evaluations (" + file_names(*files.evaluation) + "): " + problem.message;
        }
        throw Error(error.kind(), std::move(problems));
    }
}

LossChoice loss_choice(const TorchScriptOptions& options) {
    const int target = options.loss ? options.fields.find(options.loss->target) : -1;
    return {.loss = options.loss,
            .output = options.loss ? options.loss->input : options.loss_output,
            .reduction = options.loss_reduction,
            .keep_outputs = options.keep_outputs,
            .count_hits = options.count_hits,
            .of_probabilities = target >= 0 && is_floating(options.fields.fields[static_cast<size_t>(target)].dtype)};
}

OpenedModel open_model(const ModelFiles& files, const TorchScriptOptions& options) {
    std::vector<LoadedFile> loaded;
    JitGraph jit;
    const ModelFiles& run = files.in_mode(options.training);
    torch::jit::Module model = (options.stages.empty() ? open_one : open_stages)(jit, run, options, loaded);
    if (&run != &files) take_weights_of(files, jit, options, loaded);
    freeze_parameters(jit, options.freeze, options.where);
    straighten(jit);
    const std::string asks = answer_devices(jit, options.device.type());
    select_loss(jit, loss_choice(options));
    const auto digest_on_cpu = [&] {
        TorchScriptOptions on_cpu = options;
        on_cpu.device = at::kCPU;
        return open_model(files, on_cpu).digest;
    };
    // Of the model alone, so that a run may go on with the other setting, and on another device.
    const bool is_as_on_cpu = asks.empty() || options.device.is_cpu();
    const Digest digest = is_as_on_cpu ? digest_of(jit, asks, loaded) : digest_on_cpu();
    if (options.deferred_batch_norm && options.training) defer_batch_norms(jit);
    name_convolutions(jit);
    copy_written(jit);
    jit.modes = {options.training, autocast_dtype(options.precision)};
    find_modes(jit, options.device.type());
    interleave_calls(jit);
    separate_constants(jit);
    restore_numbers(*jit.graph);
    if (jit.ops.empty())
        throw Error(ErrorKind::BadData, loaded.front().archive->path().string() + ": the model computes nothing");
    return {std::move(model), std::move(jit), WeightStore(std::move(loaded)), options.init, digest};
}

std::unique_ptr<Source> make_source(OpenedModel opened, JitValues values) {
    return std::make_unique<TorchScriptSource>(std::move(opened.module), std::move(opened.jit), std::move(values),
                                               std::move(opened.weights), std::move(opened.init));
}

LoadedModel load_probed(const ModelFiles& files, const TorchScriptOptions& options) {
    OpenedModel opened = open_model(files, options);
    refuse_odd_kinds(opened.jit.parameters);
    AliasFacts aliases(opened.jit);
    check_constants(opened.jit, aliases);
    insert_reseeds(opened.jit);
    const auto weight = [&](size_t i) {
        const JitParameter& parameter = opened.jit.parameters[i];
        at::Tensor tensor = opened.weights.mapped(parameter);
        // Ops may write a buffer while probing; the map is private, but its pages are shared by later probes.
        if (parameter.is_buffer) tensor = copy_with_repeats(tensor, at::kCPU);
        return tensor.set_requires_grad(parameter.tensor.requires_grad());
    };
    const ProbeResult result = probe_or_advise(opened.jit, probe_inputs(opened.jit, options), options, weight);
    opened.weights.forget();  // the probe read every weight, and a rank keeps its own only
    JitValues values = list_values(opened.jit);
    aliases.learn(values_in_one_memory(result, values));
    check_assigned_buffers(opened.jit, aliases);
    LoadedModel loaded;
    loaded.graph = build_graph(opened.jit, aliases, result, values);
    loaded.graph.digest = opened.digest;
    loaded.graph.deferred_batch_norms = opened.jit.deferred_batch_norms;
    add_modules(loaded.graph, opened.module);
    loaded.graph.warnings = opened.jit.notes;
    const auto& file = files.in_mode(options.training).model;
    const std::string name = file ? file->path().filename().string() : "the model";
    add_notes(loaded.graph, opened.jit, name);
    add_mode_notes(loaded.graph, opened.jit, files, options.training);
    if (options.deferred_batch_norm && options.training && loaded.graph.deferred_batch_norms.empty()) {
        loaded.graph.warnings.push_back(name +
                                        ": pipeline.deferred_batch_norm = true, but no batch norm of this model "
                                        "keeps running statistics in training; the key changes nothing");
    }
    loaded.source = make_source(std::move(opened), std::move(values));
    return loaded;
}

}  // namespace

TorchScriptOptions torchscript_options(const Plan& plan, const Fields& fields, int64_t microbatch_size, bool training,
                                       at::Device device) {
    TorchScriptOptions options;
    options.inputs = plan.model.inputs;
    options.loss = plan.loss;
    options.loss_output = plan.model.loss_output;
    options.loss_reduction = plan.model.loss_reduction;
    const auto& metrics = plan.eval.metrics;
    options.count_hits = !training && std::find(metrics.begin(), metrics.end(), "accuracy") != metrics.end();
    options.training = training;
    options.fields = fields;
    options.microbatch_size = microbatch_size;
    options.deferred_batch_norm = plan.pipeline.deferred_batch_norm;
    options.precision = plan.train.precision;
    options.device = device;
    options.stages = plan.pipeline.stages;
    options.init = {plan.model.init, plan.train.seed};
    options.freeze = plan.model.freeze;
    if (training) options.eval_modules = plan.model.eval_modules;
    options.trust_sha256 = plan.model.trust_sha256;
    options.where = [plan](const std::string& key) { return plan.where(key); };
    return options;
}

LoadedModel load_torchscript(const ModelFiles& files, const TorchScriptOptions& options) {
    return naming_twin(files, options, [&] { return load_probed(files, options); });
}

std::unique_ptr<Source> open_torchscript(const ModelFiles& files, const TorchScriptOptions& options, Digest& digest) {
    OpenedModel opened = naming_twin(files, options, [&] { return open_model(files, options); });
    digest = opened.digest;
    insert_reseeds(opened.jit);
    JitValues values = list_values(opened.jit);
    return make_source(std::move(opened), std::move(values));
}

}  // namespace vpp
