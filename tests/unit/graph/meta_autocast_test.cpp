// Autocast on meta against autocast on the CPU: the rule of every op of LibTorch's list, and whole ops with others
// inside.
#include "graph/meta_autocast.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <functional>
#include <map>

#include "graph/ivalue_tensors.hpp"

namespace vpp {
namespace {

using c10::DispatchKey;

/// What an op was called with below autocast.
struct Reached {
    std::vector<at::ScalarType> dtypes;
};

/// Ends every call that comes here: behind autocast, before any kernel.
void stop(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    Reached reached;
    for (size_t i = stack->size() - op.schema().arguments().size(); i < stack->size(); ++i) {
        for (const at::Tensor& tensor : tensors_in((*stack)[i])) reached.dtypes.push_back(tensor.scalar_type());
    }
    throw reached;
}

// LibTorch has no kernels for this key.
TORCH_LIBRARY_IMPL(_, Fake, library) {
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&stop>());
}

/// Any value of an argument's type; tensors of `dtypes` in turn.
class AnyArguments {
  public:
    explicit AnyArguments(std::vector<at::ScalarType> dtypes) : dtypes_(std::move(dtypes)) {}

    c10::IValue operator()(const c10::Argument& argument) {
        if (const auto optional = argument.type()->cast<c10::OptionalType>()) {
            const bool tensor = optional->getElementType()->kind() == c10::TypeKind::TensorType;
            return tensor ? c10::IValue(next()) : c10::IValue();
        }
        switch (argument.type()->kind()) {
            case c10::TypeKind::TensorType:
                return next();
            case c10::TypeKind::FloatType:
                return 1.0;
            case c10::TypeKind::BoolType:
                return false;
            case c10::TypeKind::StringType:
                return std::string("same");
            case c10::TypeKind::ListType: {
                const auto element = argument.type()->expectRef<c10::ListType>().getElementType()->kind();
                if (element == c10::TypeKind::TensorType) return c10::List<at::Tensor>({next(), next()});
                return c10::List<int64_t>({1});
            }
            default:
                return int64_t{1};  // int, SymInt, number
        }
    }

  private:
    at::Tensor next() { return at::ones({1}, dtypes_[count_++ % dtypes_.size()]); }
    std::vector<at::ScalarType> dtypes_;
    size_t count_ = 0;
};

/// What the tensors of a call have become behind autocast on the CPU: one dtype, or none when they differ.
std::optional<at::ScalarType> dtype_behind(const c10::OperatorHandle& op, std::vector<at::ScalarType> given) {
    torch::jit::Stack stack;
    AnyArguments any(std::move(given));
    for (const c10::Argument& argument : op.schema().arguments()) stack.push_back(any(argument));
    const AutocastScope autocast(at::kCPU, at::kBFloat16);
    const c10::impl::IncludeDispatchKeyGuard stops(DispatchKey::Fake);
    const c10::impl::ExcludeDispatchKeyGuard direct(c10::autograd_dispatch_keyset |
                                                    c10::DispatchKeySet(DispatchKey::ADInplaceOrView));
    try {
        op.callBoxed(&stack);
    } catch (const Reached& reached) {
        for (const at::ScalarType dtype : reached.dtypes) {
            if (dtype != reached.dtypes.front()) return std::nullopt;
        }
        if (!reached.dtypes.empty()) return reached.dtypes.front();
    }
    return std::nullopt;
}

CastRule rule_of_libtorch(const c10::OperatorHandle& op) {
    const auto narrow = dtype_behind(op, {at::kBFloat16}), wide = dtype_behind(op, {at::kFloat});
    if (narrow == at::kFloat && wide == at::kFloat) return CastRule::Float;
    if (narrow == at::kBFloat16 && wide == at::kBFloat16) return CastRule::Lower;
    const auto mixed = dtype_behind(op, {at::kBFloat16, at::kFloat});
    if (narrow == at::kBFloat16 && mixed == at::kFloat) return CastRule::Widest;
    return CastRule::None;
}

TEST(MetaAutocast, EveryOpOfTheListHasTheRuleOfLibTorch) {
    std::map<CastRule, int> seen;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
        const auto op = c10::Dispatcher::singleton().findOp(name);
        if (!op || !op->hasSchema() || !op->hasKernelForDispatchKey(DispatchKey::AutocastCPU)) continue;
        if (name.overload_name.find("imname") != std::string::npos) continue;  // TorchScript has no names of dims
        const CastRule expected = rule_of_libtorch(*op);
        EXPECT_EQ(static_cast<int>(cast_rule(*op)), static_cast<int>(expected)) << toString(name);
        ++seen[expected];
    }
    EXPECT_GT(seen[CastRule::Lower], 20);
    EXPECT_GT(seen[CastRule::Float], 80);
    EXPECT_EQ(seen[CastRule::Widest], 3);
}

TEST(MetaAutocast, OtherOpsHaveNone) {
    for (const char* name : {"aten::add", "aten::layer_norm", "aten::relu"}) {
        const char* overload = std::string(name) == "aten::add" ? "Tensor" : "";
        EXPECT_EQ(cast_rule(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload)), CastRule::None) << name;
    }
}

using Call = std::function<at::Tensor(const at::Tensor& narrow, const at::Tensor& wide)>;

at::ScalarType dtype_on(c10::DeviceType device, at::ScalarType lower, const Call& call) {
    const MetaAutocastScope meta(lower);
    const AutocastScope cpu(at::kCPU, lower);
    const at::TensorOptions options = at::TensorOptions().device(device);
    return call(at::ones({2, 2, 4, 4}, options.dtype(lower)), at::ones({2, 2, 4, 4}, options)).scalar_type();
}

TEST(MetaAutocast, WholeOpsHaveTheDtypesOfTheCpu) {
    const std::map<std::string, Call> calls{
        {"linear", [](auto& a, auto& b) { return at::linear(a, b.select(0, 0).select(0, 0)); }},
        {"attention", [](auto& a, auto& b) { return at::scaled_dot_product_attention(a, b, b); }},
        {"loss", [](auto& a, auto& b) { return at::mse_loss(a, b); }},
        {"sum", [](auto& a, auto& b) { return a + b; }},
        {"cat",
         [](auto& a, auto& b) {
             return at::cat({a, b});
         }},
        {"cat of narrow ones",
         [](auto& a, auto&) {
             return at::cat({a, a});
         }},
        {"norm", [](auto& a, auto& b) { return at::layer_norm(a, {4}, b.select(0, 0).select(0, 0).select(0, 0), {}); }},
        {"log_softmax", [](auto& a, auto&) { return at::log_softmax(a, -1); }},
        {"gelu", [](auto& a, auto&) { return at::gelu(a); }},
        {"double", [](auto&, auto& b) { return at::linear(b.to(at::kDouble), b.to(at::kDouble)[0][0]); }},
    };
    for (const at::ScalarType lower : {at::kBFloat16, at::kHalf}) {
        for (const auto& [name, call] : calls) {
            EXPECT_EQ(dtype_on(at::kMeta, lower, call), dtype_on(at::kCPU, lower, call)) << name << ' ' << lower;
        }
    }
}

TEST(MetaAutocast, OutsideNothingIsCast) {
    const at::Tensor x = at::ones({2, 2}, at::TensorOptions().device(at::kMeta));
    {
        const MetaAutocastScope scope(std::nullopt);
        EXPECT_EQ(at::linear(x, x).scalar_type(), at::kFloat);
    }
    {
        const MetaAutocastScope scope(at::kHalf);
        EXPECT_EQ(at::linear(x, x).scalar_type(), at::kHalf);
    }
    EXPECT_EQ(at::linear(x, x).scalar_type(), at::kFloat);
}

}  // namespace
}  // namespace vpp
