#include "graph/torchscript.hpp"

#include <ATen/ops/from_blob.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstring>
#include <regex>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "graph/graph_builder.hpp"
#include "graph/jit_executable.hpp"
#include "graph/jit_graph.hpp"
#include "graph/probe.hpp"

namespace vpp {

namespace {

using caffe2::serialize::PyTorchStreamReader;
using caffe2::serialize::ReadAdapterInterface;

/// A weight record and where LibTorch wanted its bytes.
struct WeightRecord {
    std::string name;
    uint64_t offset = 0;
    uint64_t size_bytes = 0;
    const void* destination = nullptr;  ///< base of the storage that stands for it
};

/// Reads the mapped archive, but leaves out the bytes of weights and notes which storage each was meant for. The
/// storages are never touched and take no memory.
class SkippingReader : public ReadAdapterInterface {
  public:
    SkippingReader(std::shared_ptr<const Archive> archive, std::vector<WeightRecord>& records)
        : archive_(std::move(archive)), records_(records) {}

    size_t size() const override { return archive_->bytes().size(); }

    size_t read(uint64_t pos, void* buffer, size_t num_bytes, const char*) const override {
        if (pos >= size()) return 0;
        num_bytes = std::min<uint64_t>(num_bytes, size() - pos);
        if (WeightRecord* record = record_at(pos, num_bytes)) {
            record->destination = static_cast<const std::byte*>(buffer) - (pos - record->offset);
        } else {
            std::memcpy(buffer, archive_->bytes().data() + pos, num_bytes);
        }
        return num_bytes;
    }

  private:
    /// The record that holds the whole range.
    WeightRecord* record_at(uint64_t pos, size_t num_bytes) const {
        auto after = std::upper_bound(records_.begin(), records_.end(), pos,
                                      [](uint64_t p, const WeightRecord& record) { return p < record.offset; });
        if (after == records_.begin()) return nullptr;
        WeightRecord& record = *std::prev(after);
        return pos + num_bytes <= record.offset + record.size_bytes ? &record : nullptr;
    }

    std::shared_ptr<const Archive> archive_;
    std::vector<WeightRecord>& records_;  ///< by offset; empty while offsets are looked up
};

std::vector<WeightRecord> find_weights(const std::shared_ptr<const Archive>& archive) {
    std::vector<WeightRecord> none, found;
    PyTorchStreamReader reader(std::make_shared<SkippingReader>(archive, none));
    for (const auto& [name, record] : archive->records()) {
        if (!name.starts_with("data/") || record.size_bytes == 0) continue;
        if (!record.stored) {
            throw Error(ErrorKind::BadData, archive->path().string() + ": the weight record " + name +
                                                " is compressed; save the model with torch.jit.save");
        }
        found.push_back({name, reader.getRecordOffset(name), record.size_bytes});
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
    return found;
}

/// Gives parameters their bytes: finds the record of a tensor's storage.
class WeightStore {
  public:
    WeightStore(std::shared_ptr<const Archive> archive, std::vector<WeightRecord> records)
        : archive_(std::move(archive)), records_(std::move(records)) {}

    /// The tensor over the mapped bytes, not compared, not copied.
    at::Tensor mapped(const JitParameter& parameter) const {
        const at::Tensor& tensor = parameter.tensor;
        if (tensor.numel() == 0) return tensor.detach().clone();
        const WeightRecord& record = record_of(parameter);
        const uint64_t needed = static_cast<uint64_t>(tensor.storage_offset()) * tensor.itemsize() +
                                at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
        if (needed > record.size_bytes) damaged(parameter, "its record is too short");
        std::byte* data =
            archive_->bytes().data() + record.offset + static_cast<size_t>(tensor.storage_offset()) * tensor.itemsize();
        return at::from_blob(data, tensor.sizes(), tensor.strides(), tensor.options());
    }

    at::Tensor copy(const JitParameter& parameter) const {
        if (parameter.tensor.numel() > 0) {
            const WeightRecord& record = record_of(parameter);
            archive_->check_stored(record.name, record.offset);
        }
        return mapped(parameter).clone().set_requires_grad(parameter.tensor.requires_grad());
    }

  private:
    const WeightRecord& record_of(const JitParameter& parameter) const {
        const void* storage = parameter.tensor.storage().data();
        const auto found = std::find_if(records_.begin(), records_.end(),
                                        [&](const WeightRecord& record) { return record.destination == storage; });
        if (found == records_.end()) damaged(parameter, "it has no record of its own in the file");
        return *found;
    }

    [[noreturn]] void damaged(const JitParameter& parameter, const std::string& what) const {
        throw Error(ErrorKind::BadData,
                    archive_->path().string() + ": the weight '" + parameter.name + "' cannot be read: " + what);
    }

    std::shared_ptr<const Archive> archive_;
    std::vector<WeightRecord> records_;
};

class TorchScriptSource : public Source {
  public:
    TorchScriptSource(torch::jit::Module model, JitGraph jit, JitValues values, WeightStore weights)
        : model_(std::move(model)), jit_(std::move(jit)), values_(std::move(values)), weights_(std::move(weights)) {}

    std::unique_ptr<Executable> executable(OpRange range, const std::vector<int>& live_ins,
                                           const std::vector<int>& parameters,
                                           const std::vector<int>& live_outs) override {
        std::vector<torch::jit::Value*> inputs, outputs;
        for (int value : live_ins) inputs.push_back(values_.at(static_cast<size_t>(value)));
        for (int parameter : parameters) inputs.push_back(jit_.parameters.at(static_cast<size_t>(parameter)).value);
        for (int value : live_outs) outputs.push_back(values_.at(static_cast<size_t>(value)));
        return compile_ops(jit_, range, inputs, outputs);
    }

    at::Tensor weight(int parameter) override {
        return weights_.copy(jit_.parameters.at(static_cast<size_t>(parameter)));
    }

  private:
    torch::jit::Module model_;  ///< owns the types that the graph refers to
    JitGraph jit_;
    JitValues values_;
    WeightStore weights_;
};

torch::jit::Module load_module(const std::shared_ptr<const Archive>& archive, std::vector<WeightRecord>& records) {
    try {
        std::shared_ptr<ReadAdapterInterface> reader = std::make_shared<SkippingReader>(archive, records);
        return torch::jit::load(reader, at::kCPU, /*load_debug_files=*/false);
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        const std::string text = error.what();
        throw Error(ErrorKind::BadData, archive->path().string() + ": LibTorch cannot load this model: " +
                                            printable(text.substr(0, text.find('\n'))));
    }
}

/// Names forward's arguments: the plan's list, else the arguments' own names. Arguments behind the list get their
/// defaults.
void bind_inputs(JitGraph& jit, const torch::jit::Module& model, const TorchScriptOptions& options) {
    const auto& arguments = model.get_method("forward").function().getSchema().arguments();
    const size_t num_arguments = arguments.size() - 1;  // without self
    if (options.inputs.size() > num_arguments) {
        throw Error(ErrorKind::BadData, "model.inputs names " + std::to_string(options.inputs.size()) +
                                            " fields, but forward takes " + std::to_string(num_arguments));
    }
    std::vector<size_t> bound_to_default;
    for (size_t i = 0; i < num_arguments; ++i) {
        const c10::Argument& argument = arguments[i + 1];
        const bool listed = i < options.inputs.size();
        const std::string field = listed ? options.inputs[i] : argument.name();
        const bool wanted = listed || (options.inputs.empty() && options.fields.find(field) >= 0);
        if (!wanted && argument.default_value()) {
            bound_to_default.push_back(i);
            continue;
        }
        if (options.fields.find(field) < 0) {
            std::string known;
            for (const Field& f : options.fields.fields) known += (known.empty() ? "" : ", ") + f.name;
            throw Error(ErrorKind::BadData, "forward's argument '" + argument.name() + "' would be the data field '" +
                                                field + "', which the data does not have (it has: " + known +
                                                "); set model.inputs to the fields in the order of the arguments");
        }
        jit.inputs.push_back({field, jit.graph->inputs()[i]});
        jit.graph->inputs()[i]->setType(c10::TensorType::get());
    }
    for (auto it = bound_to_default.rbegin(); it != bound_to_default.rend(); ++it) {
        const torch::jit::WithInsertPoint at_start(*jit.graph->nodes().begin());
        torch::jit::Value* value = jit.graph->insertConstant(*arguments[*it + 1].default_value());
        jit.graph->inputs()[*it]->replaceAllUsesWith(value);
        jit.graph->eraseInput(*it);
    }
}

/// Answers `input is None` for inputs that are bound, so that branches for absent arguments fold away.
void fold_none_checks(JitGraph& jit) {
    namespace aten = torch::jit::aten;
    for (const JitInput& input : jit.inputs) {
        const auto uses = input.value->uses();
        for (const torch::jit::Use& use : uses) {
            const bool is = use.user->kind() == aten::__is__, is_not = use.user->kind() == aten::__isnot__;
            if (!is && !is_not) continue;
            if (!use.user->input(1 - use.offset)->mustBeNone()) continue;
            const torch::jit::WithInsertPoint before(use.user);
            use.user->output()->replaceAllUsesWith(jit.graph->insertConstant(is_not));
        }
    }
}

std::vector<ProbeInput> probe_inputs(const JitGraph& jit, const Fields& fields) {
    std::vector<ProbeInput> inputs;
    for (const JitInput& input : jit.inputs) {
        const int field = fields.find(input.name);
        if (field < 0) {
            throw Error(ErrorKind::BadData,
                        "the loss compares with the data field '" + input.name + "', which the data does not have");
        }
        inputs.push_back({input.value, fields.fields[static_cast<size_t>(field)]});
    }
    return inputs;
}

/// Probes with the plan's size; when that fails and another size works, says which.
ProbeResult probe_or_advise(const JitGraph& jit, const std::vector<ProbeInput>& inputs, int64_t microbatch_size,
                            const std::function<at::Tensor(size_t)>& weight) {
    try {
        return probe(jit, inputs, microbatch_size, weight);
    } catch (const Error& error) {
        std::string sizes;
        for (int64_t size : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 128}) {
            if (size == microbatch_size) continue;
            try {
                probe(jit, inputs, size, weight);
                sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
            } catch (const Error&) {
                continue;
            }
        }
        const std::string samples = std::to_string(microbatch_size) + " samples";
        if (sizes.empty())
            throw Error(error.kind(), error.what() + std::string(" (with a microbatch of ") + samples + ")");
        throw Error(ErrorKind::BadData,
                    "the model cannot take a microbatch of " + samples + " (" + error.what() + "), but it takes " +
                        sizes +
                        "; it was probably traced with that size: choose train.global_batch_size = that size x "
                        "pipeline.num_microbatches x mesh.dp, or script the model instead");
    }
}

Digest digest_of(const JitGraph& jit, const Archive& archive) {
    Hasher hasher;
    // Class names and warnings are numbered by counters that depend on what the process loaded before.
    static const std::regex kMangling("\\.___torch_mangle_[0-9]+|\\[warn_id=[0-9]+\\]");
    hasher.add_text(std::regex_replace(jit.graph->toString(/*print_source_locations=*/false), kMangling, ""));
    for (const auto& [name, record] : archive.records()) {
        if (!name.starts_with("data/") && !name.starts_with("constants/")) continue;
        hasher.add_text(name);
        hasher.add(bytes_of(record.size_bytes));
        hasher.add(bytes_of(record.crc));
    }
    return hasher.digest();
}

void add_modules(Graph& graph, const torch::jit::Module& model) {
    for (const auto& named : model.named_modules()) {
        const auto name = named.value.type()->name();
        graph.modules.push_back({named.name, name ? name->name() : ""});
    }
}

bool has_mode(const Graph& graph) {
    return std::any_of(graph.ops.begin(), graph.ops.end(), [](const GraphOp& op) {
        return op.kind.find("dropout") != std::string::npos || op.kind.find("batch_norm") != std::string::npos;
    });
}

void add_notes(Graph& graph, const JitGraph& jit, const std::string& file) {
    for (const std::string& output : jit.not_kept) {
        graph.warnings.push_back(file + ": forward's " + output + " is no tensor and is left out of the outputs");
    }
    graph.mode_is_baked_in = !jit.reads_training && has_mode(graph);
    if (graph.mode_is_baked_in) {
        graph.warnings.push_back(file +
                                 ": train and eval mode are baked into this model (it was traced); dropout and "
                                 "batch norm act in evaluation as they did when it was traced");
    }
}

/// A model whose graph is complete but for the reseeds.
struct OpenedModel {
    torch::jit::Module module;
    JitGraph jit;
    WeightStore weights;
    Digest digest;
};

OpenedModel open_model(const std::shared_ptr<const Archive>& archive, const TorchScriptOptions& options) {
    std::vector<WeightRecord> records = find_weights(archive);
    torch::jit::Module model = load_module(archive, records);
    model.train(options.training);
    JitGraph jit;
    jit.graph = inline_with_labels(model);
    resolve_attributes(jit, model);
    bind_inputs(jit, model, options);
    fold_none_checks(jit);
    fold_constants(jit);
    replace_appends(jit);
    select_loss(jit, {options.loss, options.loss ? options.loss->input : options.loss_output, options.loss_reduction,
                      options.keep_outputs});
    list_ops(jit);
    if (jit.ops.empty()) throw Error(ErrorKind::BadData, archive->path().string() + ": the model computes nothing");
    const Digest digest = digest_of(jit, *archive);
    return {std::move(model), std::move(jit), WeightStore(archive, std::move(records)), digest};
}

std::unique_ptr<Source> make_source(OpenedModel opened, JitValues values) {
    return std::make_unique<TorchScriptSource>(std::move(opened.module), std::move(opened.jit), std::move(values),
                                               std::move(opened.weights));
}

}  // namespace

TorchScriptOptions torchscript_options(const Plan& plan, const Fields& fields, int64_t microbatch_size, bool training) {
    TorchScriptOptions options;
    options.inputs = plan.model.inputs;
    options.loss = plan.loss;
    options.loss_output = plan.model.loss_output;
    options.loss_reduction = plan.model.loss_reduction;
    options.training = training;
    options.fields = fields;
    options.microbatch_size = microbatch_size;
    return options;
}

LoadedModel load_torchscript(const std::shared_ptr<const Archive>& archive, const TorchScriptOptions& options) {
    OpenedModel opened = open_model(archive, options);
    const AliasFacts aliases(opened.jit);
    insert_reseeds(opened.jit);
    const auto weight = [&](size_t i) {
        const JitParameter& parameter = opened.jit.parameters[i];
        at::Tensor tensor = opened.weights.mapped(parameter);
        // Ops may write a buffer while probing; the map is private, but its pages are shared by later probes.
        if (parameter.is_buffer) tensor = tensor.clone();
        return tensor.set_requires_grad(parameter.tensor.requires_grad());
    };
    const ProbeResult result =
        probe_or_advise(opened.jit, probe_inputs(opened.jit, options.fields), options.microbatch_size, weight);
    JitValues values = list_values(opened.jit);
    LoadedModel loaded;
    loaded.graph = build_graph(opened.jit, aliases, result, values);
    loaded.graph.digest = opened.digest;
    add_modules(loaded.graph, opened.module);
    add_notes(loaded.graph, opened.jit, archive->path().filename().string());
    loaded.source = make_source(std::move(opened), std::move(values));
    return loaded;
}

std::unique_ptr<Source> open_torchscript(const std::shared_ptr<const Archive>& archive,
                                         const TorchScriptOptions& options, Digest& digest) {
    OpenedModel opened = open_model(archive, options);
    digest = opened.digest;
    insert_reseeds(opened.jit);
    JitValues values = list_values(opened.jit);
    return make_source(std::move(opened), std::move(values));
}

}  // namespace vpp
