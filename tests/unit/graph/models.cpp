#include "unit/graph/models.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/csrc/jit/serialization/import_source.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "graph/ivalue_tensors.hpp"

namespace vpp::test {

namespace {

using torch::jit::CompilationUnit;

/// A class that turns gradients off while it is entered, as torch.no_grad stands in a loaded file.
constexpr const char* kGradGuard = R"JIT(
class NAME:
  prev : bool
  def __enter__(self: MODULE.NAME) -> NoneType:
    self.prev = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    return None
  def __exit__(self: MODULE.NAME, type: Any, value: Any, traceback: Any) -> NoneType:
    torch.set_grad_enabled(self.prev)
    return None
  def __init__(self: MODULE.NAME) -> NoneType:
    self.prev = False
    return None
)JIT";

std::string grad_guard(const std::string& module, const std::string& name) {
    const std::string named = std::regex_replace(kGradGuard, std::regex("NAME"), name);
    return std::regex_replace(named, std::regex("MODULE"), module);
}

/// The classes of guards, by the module that they stand in.
const std::map<std::string, std::string> kGuards{
    {"__torch__.torch.autograd.grad_mode", grad_guard("__torch__.torch.autograd.grad_mode", "no_grad")},
    {"__torch__.own", grad_guard("__torch__.own", "guard")},
    {"__torch__.torch.amp.autocast_mode", R"JIT(
class autocast:
  fast_dtype : int
  _enabled : bool
  device : str
  def __enter__(self: __torch__.torch.amp.autocast_mode.autocast) -> __torch__.torch.amp.autocast_mode.autocast:
    return self
  def __exit__(self: __torch__.torch.amp.autocast_mode.autocast, type: Any, value: Any, traceback: Any) -> NoneType:
    return None
  def __init__(self: __torch__.torch.amp.autocast_mode.autocast, device_type: str, dtype: Optional[int]=None,
    enabled: bool=True) -> NoneType:
    if torch.__is__(dtype, None):
      _0 = torch.get_autocast_dtype(device_type)
    else:
      _0 = unchecked_cast(int, dtype)
    self.fast_dtype = _0
    self._enabled = enabled
    self.device = device_type
    return None
)JIT"}};
const std::map<std::string, std::string> kGuardNames{{"NoGrad", "__torch__.torch.autograd.grad_mode.no_grad"},
                                                     {"Autocast", "__torch__.torch.amp.autocast_mode.autocast"},
                                                     {"OwnGuard", "__torch__.own.guard"}};

/// Finds free functions, guards, fork and prim.<op> beside what every model sees.
class ModuleNames : public torch::jit::Resolver {
  public:
    explicit ModuleNames(std::shared_ptr<CompilationUnit> unit) : unit_(std::move(unit)) {}

    std::shared_ptr<torch::jit::SugaredValue> resolveValue(const std::string& name, torch::jit::GraphFunction& method,
                                                           const torch::jit::SourceRange& range) override {
        const c10::QualifiedName full("__torch__." + name);
        if (torch::jit::Function* function = unit_->find_function(full)) {
            return std::make_shared<torch::jit::FunctionValue>(function);
        }
        if (name == "prim") return std::make_shared<torch::jit::BuiltinModule>("prim");
        if (name == "fork") return torch::jit::SpecialFormValue::create(torch::jit::prim::fork);
        if (kGuardNames.contains(name)) return std::make_shared<torch::jit::ClassValue>(guard(kGuardNames.at(name)));
        return torch::jit::nativeResolver()->resolveValue(name, method, range);
    }

  private:
    c10::ClassTypePtr guard(const std::string& name) {
        if (const c10::ClassTypePtr known = unit_->get_class(c10::QualifiedName(name))) return known;
        const auto find = [](const std::string& module) {
            const auto found = kGuards.find(module);
            return found == kGuards.end() ? nullptr : std::make_shared<torch::jit::Source>(found->second);
        };
        const std::vector<c10::IValue> constants;
        return torch::jit::SourceImporter(unit_, &constants, find, 10)
            .loadType(c10::QualifiedName(name))
            ->expect<c10::ClassType>();
    }

    std::shared_ptr<CompilationUnit> unit_;
};

torch::jit::Module make_module(const ModuleSpec& spec, const std::shared_ptr<CompilationUnit>& unit) {
    torch::jit::Module module(c10::QualifiedName("__torch__." + spec.class_name), unit, /*shouldMangle=*/true);
    module.register_attribute("training", c10::BoolType::get(), true);
    for (const auto& [name, tensor] : spec.parameters) module.register_parameter(name, tensor, /*is_buffer=*/false);
    for (const auto& [name, tensor] : spec.buffers) module.register_buffer(name, tensor);
    for (const auto& [name, value] : spec.attributes) module.register_attribute(name, value.type(), value);
    for (const auto& [name, child] : spec.children) module.register_module(name, make_module(child, unit));
    if (!spec.code.empty()) module.define(spec.code, std::make_shared<ModuleNames>(unit));
    return module;
}

/// A tensor of its own memory with the same strides: kernels choose their order of sums by them.
at::Tensor copy_with_strides(const at::Tensor& tensor) {
    if (!tensor.is_non_overlapping_and_dense()) {
        const bool expanded =
            std::any_of(tensor.strides().begin(), tensor.strides().end(), [](auto s) { return s == 0; });
        if (!expanded) return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()).copy_(tensor);
    }
    return tensor.clone();
}

/// Where models are saved; removed when the process ends.
struct ModelFolder {
    ModelFolder() { std::filesystem::create_directories(path); }
    ~ModelFolder() { std::filesystem::remove_all(path); }
    std::filesystem::path path =
        std::filesystem::path(::testing::TempDir()) / ("vpp_models_" + std::to_string(::getpid()));
};

/// Copies what is live, one copy for one tensor.
void copy_live(std::map<int, c10::IValue>& live) {
    std::map<const void*, at::Tensor> copies;
    for (auto& [id, value] : live) {
        value = map_tensors(value, [&](const at::Tensor& tensor) {
            return copies.emplace(tensor.unsafeGetTensorImpl(), copy_with_strides(tensor)).first->second;
        });
    }
}

bool is_parameter(const Graph& graph, int value) {
    const GraphValue& entry = graph.values[static_cast<size_t>(value)];
    return entry.producer < 0 && graph.tensors[static_cast<size_t>(entry.tensors[0])].parameter >= 0;
}

std::map<int, c10::IValue> bind_inputs(const Graph& graph, const Inputs& inputs) {
    std::map<int, c10::IValue> live;
    for (const GraphInput& input : graph.inputs) {
        if (input.value >= 0) live[input.value] = inputs.at(input.name).clone();  // as the loader does
    }
    return live;
}

/// Runs one piece: reads from `live` and puts there what it makes.
void run_piece(LoadedModel& model, OpRange range, const std::vector<int>& wanted, std::map<int, c10::IValue>& live,
               uint64_t key) {
    const Graph& graph = model.graph;
    std::set<int> live_ins, parameters, live_outs(wanted.begin(), wanted.end());
    for (int op = range.begin; op < range.end; ++op) {
        for (int value : graph.ops[static_cast<size_t>(op)].inputs) {
            const GraphValue& entry = graph.values[static_cast<size_t>(value)];
            if (is_parameter(graph, value)) {
                parameters.insert(graph.tensors[static_cast<size_t>(entry.tensors[0])].parameter);
            } else if (entry.producer < range.begin) {
                live_ins.insert(value);
            }
        }
        for (int value : graph.ops[static_cast<size_t>(op)].outputs) {
            const GraphValue& entry = graph.values[static_cast<size_t>(value)];
            if (!entry.uses.empty() && entry.uses.back() >= range.end) live_outs.insert(value);
        }
    }
    std::erase_if(live_outs, [&](int value) {
        const int producer = graph.values[static_cast<size_t>(value)].producer;
        return producer < range.begin || producer >= range.end;
    });
    std::vector<c10::IValue> arguments;
    for (int value : live_ins) arguments.push_back(live.at(value));
    for (int parameter : parameters) arguments.emplace_back(model.source->weight(parameter));
    const std::vector<int> outs(live_outs.begin(), live_outs.end());
    const auto code = model.source->executable(
        {range.list(), {live_ins.begin(), live_ins.end()}, {parameters.begin(), parameters.end()}, outs}, at::kCPU);
    const std::vector<c10::IValue> results = code->run(std::move(arguments), key);
    for (size_t i = 0; i < outs.size(); ++i) live[outs[i]] = results.at(i);
}

}  // namespace

at::Tensor values(const std::vector<int64_t>& shape, int seed) {
    const auto count = static_cast<double>(num_elements(shape));
    return at::arange(0.0, count, at::kFloat).mul_(0.7).add_(0.3 + 1.9 * seed).sin_().reshape(shape);
}

at::Tensor weight(const std::vector<int64_t>& shape, int seed) {
    return values(shape, seed).set_requires_grad(true);
}

ModuleSpec linear(int64_t in, int64_t out, int seed) {
    return {"Linear",
            "def forward(self, x):\n    return torch.linear(x, self.weight, self.bias)\n",
            {{"weight", weight({out, in}, seed)}, {"bias", weight({out}, seed + 1)}}};
}

ModuleSpec dropout() {
    return {"Dropout", "def forward(self, x):\n    return torch.dropout(x, 0.5, self.training)\n"};
}

ModuleSpec batch_norm(int64_t features) {
    return {"BatchNorm1d",
            R"JIT(
def forward(self, x):
    if self.training:
        self.num_batches_tracked.add_(1)
    return torch.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var, self.training, 0.1, 1e-5,
                            False)
)JIT",
            {{"weight", weight({features}, 5)}, {"bias", weight({features}, 6)}},
            {{"running_mean", at::zeros({features})},
             {"running_var", at::ones({features})},
             {"num_batches_tracked", at::zeros({}, at::kLong)}}};
}

ModuleSpec sequential(std::vector<ModuleSpec> parts) {
    ModuleSpec spec{"Sequential", "def forward(self, x):\n"};
    for (size_t i = 0; i < parts.size(); ++i) {
        const std::string name = std::to_string(i);
        spec.code += "    x = getattr(self, \"" + name + "\").forward(x)\n";
        spec.children.emplace_back(name, std::move(parts[i]));
    }
    spec.code += "    return x\n";
    return spec;
}

std::filesystem::path save(const ModuleSpec& spec) {
    static const ModelFolder folder;
    static int count = 0;
    const std::filesystem::path path = folder.path / (std::to_string(count++) + ".pt");
    const auto unit = std::make_shared<CompilationUnit>();
    if (!spec.functions.empty()) {
        unit->define(c10::QualifiedName("__torch__"), spec.functions, torch::jit::nativeResolver(), nullptr);
    }
    torch::jit::Module module = make_module(spec, unit);
    if (spec.is_traced) module.store_traced_inputs("forward", {at::ones({2, 4})});
    module.save(path.string());
    return path;
}

TorchScriptOptions options_for(std::vector<Field> fields, int64_t microbatch_size) {
    TorchScriptOptions options;
    options.fields = {std::move(fields), 100};
    options.microbatch_size = microbatch_size;
    return options;
}

LoadedModel load(const ModuleSpec& spec, const TorchScriptOptions& options) {
    const std::filesystem::path path = save(spec);
    const auto archive = std::make_shared<const Archive>(path);
    std::filesystem::remove(path);  // the map stays
    return load_torchscript(archive, options);
}

at::Tensor run_in_pieces(LoadedModel& model, const std::vector<int>& cuts, const Inputs& inputs, uint64_t key) {
    std::map<int, c10::IValue> live = bind_inputs(model.graph, inputs);
    std::vector<int> ends = cuts;
    ends.push_back(model.graph.num_ops());
    int begin = 0;
    for (int end : ends) {
        std::erase_if(live, [&](const auto& entry) {
            const GraphValue& value = model.graph.values[static_cast<size_t>(entry.first)];
            return entry.first != model.graph.loss && (value.uses.empty() || value.uses.back() < begin);
        });
        copy_live(live);
        run_piece(model, {begin, end}, {model.graph.loss}, live, key);
        begin = end;
    }
    return live.at(model.graph.loss).toTensor();
}

std::vector<c10::IValue> run_whole(LoadedModel& model, const std::vector<int>& wanted, const Inputs& inputs,
                                   uint64_t key) {
    std::map<int, c10::IValue> live = bind_inputs(model.graph, inputs);
    run_piece(model, {0, model.graph.num_ops()}, wanted, live, key);
    std::vector<c10::IValue> found;
    for (int value : wanted) found.push_back(live.at(value));
    return found;
}

Graph load_exactly(const ModuleSpec& spec, const TorchScriptOptions& options, const Inputs& inputs) {
    torch::jit::Module module = torch::jit::load(save(spec).string());
    module.train();
    std::vector<c10::IValue> arguments;
    for (const Field& field : options.fields.fields) arguments.emplace_back(inputs.at(field.name).clone());
    const std::string expected = bits_of(module.forward(arguments).toTensor());
    LoadedModel model = load(spec, options);
    EXPECT_EQ(bits_of(run_in_pieces(model, {}, inputs)), expected) << spec.code;
    for (int cut = 1; cut < model.graph.num_ops(); ++cut) {
        if (!model.graph.cuts[static_cast<size_t>(cut)].legal) continue;
        EXPECT_EQ(bits_of(run_in_pieces(model, {cut}, inputs)), expected) << "cut " << cut << " of " << spec.code;
    }
    return model.graph;
}

std::string bits_of(const at::Tensor& tensor) {
    const at::Tensor dense = tensor.detach().contiguous();
    return {static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()};
}

std::vector<std::string> labels_of(const Graph& graph) {
    std::vector<std::string> labels;
    for (const GraphOp& op : graph.ops) labels.push_back(op.kind + " " + op.module);
    return labels;
}

int op_of(const Graph& graph, const std::string& kind, int from) {
    for (int op = from; op < graph.num_ops(); ++op) {
        if (graph.ops[static_cast<size_t>(op)].kind == kind) return op;
    }
    ADD_FAILURE() << "no op " << kind << " at or behind " << from;
    return 0;
}

const GraphParameter& parameter_of(const Graph& graph, const std::string& name) {
    const auto found = std::find_if(graph.parameters.begin(), graph.parameters.end(),
                                    [&](const GraphParameter& parameter) { return parameter.name == name; });
    if (found != graph.parameters.end()) return *found;
    ADD_FAILURE() << "no parameter " << name;
    return graph.parameters.at(0);
}

std::string refusal(ErrorKind kind, const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), kind) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
}

}  // namespace vpp::test
