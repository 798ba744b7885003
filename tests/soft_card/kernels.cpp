// LibTorch's ops on a soft card: the kernels that it has for cards give way to those of the CPU, over the same bytes.
// An op runs in its stream, when that has done what it was given before, and the host goes on at once with results that
// are not there yet. What shapes they have is found by running the op over zeros.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "soft_card/card_only.hpp"
#include "soft_card/memory.hpp"
#include "soft_card/runtime.hpp"
#include "soft_card/streams.hpp"

namespace vpp::soft_card {

namespace {

using c10::IValue;
using torch::jit::Stack;

/// Kernels that LibTorch has for cards and that run here as they are: they allocate, copy through the runtime, or only
/// look at a tensor in another way.
const std::set<std::string> kKept{"aten::empty.memory_format",
                                  "aten::empty_strided",
                                  "aten::as_strided",
                                  "aten::view",
                                  "aten::_reshape_alias",
                                  "aten::unfold",
                                  "aten::resize_",
                                  "aten::set_",
                                  "aten::set_.source_Tensor",
                                  "aten::set_.source_Storage",
                                  "aten::set_.source_Storage_storage_offset",
                                  "aten::record_stream",
                                  "aten::_local_scalar_dense",
                                  "aten::is_set_to",
                                  "aten::_efficientzerotensor"};
/// Ops that take tensors of the CPU and of a card at once.
const std::set<std::string> kMixed{"aten::copy_", "aten::index.Tensor", "aten::index_put_", "aten::_index_put_impl_"};
/// Ops whose results have other bits on a card than on the CPU.
const std::set<std::string> kRounded{"aten::mm",
                                     "aten::addmm",
                                     "aten::bmm",
                                     "aten::baddbmm",
                                     "aten::convolution",
                                     "aten::_foreach_norm.Scalar",
                                     "aten::cumprod",
                                     "aten::_logcumsumexp",
                                     "aten::bincount",
                                     "aten::scatter.reduce",
                                     "aten::scatter_reduce.two",
                                     "aten::convolution_backward"};

/// Ops whose kernels for cards throw where only exact ones may run, as LibTorch's own do (device/exact_kernels.hpp,
/// device/host_kernels.hpp).
const std::set<std::string> kInexact{"_adaptive_avg_pool2d_backward",
                                     "_adaptive_avg_pool3d_backward",
                                     "adaptive_max_pool2d_backward",
                                     "avg_pool3d_backward",
                                     "_ctc_loss_backward",
                                     "fractional_max_pool2d_backward",
                                     "fractional_max_pool3d_backward",
                                     "grid_sampler_2d_backward",
                                     "grid_sampler_3d_backward",
                                     "index_reduce",
                                     "max_pool3d_with_indices_backward",
                                     "max_unpool2d",
                                     "max_unpool3d",
                                     "nll_loss2d_forward",
                                     "put_",
                                     "reflection_pad1d_backward",
                                     "reflection_pad3d_backward",
                                     "replication_pad1d_backward",
                                     "replication_pad2d_backward",
                                     "replication_pad3d_backward",
                                     "_upsample_bicubic2d_aa_backward",
                                     "_upsample_bilinear2d_aa_backward",
                                     "upsample_bicubic2d_backward",
                                     "upsample_bilinear2d_backward",
                                     "upsample_linear1d_backward",
                                     "upsample_trilinear3d_backward"};

Stream& current_stream() {
    return stream_of(c10::cuda::getCurrentCUDAStream().stream());
}

/// The bytes of a tensor of a card as a tensor of the CPU. It keeps no memory: what an op still waits to do with some
/// is done before whatever its stream gets later.
at::Tensor near_of(const at::Tensor& tensor) {
    if (tensor.numel() == 0)
        return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
    return at::from_blob(near(tensor.unsafeGetTensorImpl()->data()), tensor.sizes(), tensor.strides(),
                         tensor.options().device(at::kCPU).requires_grad(false));
}

/// A tensor of the CPU as the card gets it: with the numbers that it has now.
at::Tensor kept_of(const at::Tensor& tensor) {
    at::Tensor kept = tensor.clone();
    kept.unsafeGetTensorImpl()->set_wrapped_number(tensor.unsafeGetTensorImpl()->is_wrapped_number());
    return kept;
}

using Mapping = std::function<at::Tensor(const at::Tensor&)>;

/// A value with other tensors in place of those that it has.
IValue mapped(const IValue& value, const Mapping& map) {
    if (value.isTensor()) return map(value.toTensor());
    if (value.isTensorList()) {
        c10::List<at::Tensor> all;
        for (const at::Tensor& one : value.toTensorVector()) all.push_back(map(one));
        return all;
    }
    if (value.isList() && value.toList().elementType()->isSubtypeOf(*c10::OptionalType::ofTensor())) {
        c10::List<std::optional<at::Tensor>> all;
        for (const IValue& one : value.toListRef()) {
            all.push_back(one.isNone() ? std::optional<at::Tensor>() : map(one.toTensor()));
        }
        return all;
    }
    return value;
}

/// Random ops draw from the card's generator: which numbers come is a function of its seed and offset, and it moves on
/// when the host gives the op to the card.
class CardRandomness {
  public:
    CardRandomness(const c10::OperatorHandle& op, Stack& arguments) {
        if (!op.hasTag(at::Tag::nondeterministic_seeded)) return;
        at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator();
        for (IValue& value : arguments) {
            if (!value.isGenerator()) continue;
            generator = value.toGenerator();
            value = IValue();
        }
        constexpr uint64_t kStep = 4, kFactor = 0x9E3779B97F4A7C15;
        auto* card = at::check_generator<at::CUDAGeneratorImpl>(generator);
        const std::lock_guard lock(card->mutex_);
        const at::PhiloxCudaState state = card->philox_cuda_state(kStep);
        seed_ = [state] {
            const auto number = [&](const auto& one) {
                return state.captured_ ? *static_cast<const uint64_t*>(near(one.ptr)) : one.val;
            };
            return number(state.seed_) * kFactor + number(state.offset_) + state.offset_intragraph_;
        };
        is_recorded_ = state.captured_;
    }

    bool is_drawn() const { return seed_ != nullptr; }
    /// With a seed that is there when the op runs.
    bool is_recorded() const { return is_recorded_; }

    /// Runs `op`, which draws from the host's generator. Requires: nobody else does meanwhile.
    void run(const c10::OperatorHandle& op, Stack& stack) const {
        if (!seed_) return op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
        at::Generator host = at::detail::getDefaultCPUGenerator();
        const at::Tensor kept = host.get_state();
        host.set_current_seed(seed_());
        op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
        host.set_state(kept);
    }

  private:
    std::function<uint64_t()> seed_;
    bool is_recorded_ = false;
};

/// Whether results have other bits than the CPU's: a division by a number of the host multiplies by its reciprocal.
bool rounds(const c10::OperatorHandle& op, const Stack& arguments) {
    const std::string name = c10::toString(op.operator_name());
    if (name == "aten::div.Tensor" || name == "aten::div_.Tensor") return arguments.at(1).toTensor().is_cpu();
    return kRounded.contains(name);
}

/// One op, from the call of the host to its turn in the stream.
class Call {
  public:
    Call(const c10::OperatorHandle& op, Stack arguments)
        : op_(op), arguments_(std::move(arguments)), randomness_(op, arguments_), rounds_(rounds(op_, arguments_)) {
        for (IValue& value : arguments_) {
            if (value.isDevice()) value = c10::Device(at::kCPU);
            value = mapped(value, [&](const at::Tensor& tensor) {
                if (!tensor.defined() || tensor.is_cuda()) return tensor;
                TORCH_CHECK(tensor.dim() == 0 || kMixed.contains(c10::toString(op.operator_name())), op.operator_name(),
                            " got a tensor of ", tensor.device(), " among those of a card");
                return kept_of(tensor);
            });
        }
    }

    /// Tensors of the card, which hold the results when the stream has done what it is given here. A random op is
    /// waited for: the host's generator is the host's.
    Stack give_to(Stream& stream) {
        Stack results = results_without_numbers(stream);
        Stack near_arguments, near_results;
        for (const IValue& value : arguments_) near_arguments.push_back(mapped(value, near_if_far));
        for (const IValue& value : results) near_results.push_back(mapped(value, near_if_far));
        launch(stream, [op = op_, randomness = randomness_, rounds = rounds_,
                        near_arguments = std::move(near_arguments), near_results = std::move(near_results)] {
            run_in_turn(op, randomness, rounds, near_arguments, near_results);
        });
        if (randomness_.is_recorded()) {
            stream.have_replays_waited_for();
        } else if (randomness_.is_drawn()) {
            wait_for(stream);
        }
        return results;
    }

  private:
    static void wait_for(Stream& stream) {
        if (stream.is_recording()) C10_CUDA_CHECK(cudaErrorStreamCaptureUnsupported);
        stream.finish();
    }

    static at::Tensor near_if_far(const at::Tensor& tensor) {
        return tensor.defined() && tensor.is_cuda() ? near_of(tensor) : tensor;
    }

    /// Shapes follow from those of the arguments, so zeros tell them; else the card is waited for, as one has to be.
    Stack results_without_numbers(Stream& stream) {
        if (!op_.hasTag(at::Tag::dynamic_output_shape) && !op_.hasTag(at::Tag::data_dependent_output)) {
            try {
                return results_from([](const at::Tensor& far) {
                    const auto options = far.options().device(at::kCPU).requires_grad(false);
                    at::Tensor zeros = at::empty_strided(far.sizes(), far.strides(), options);
                    std::memset(zeros.data_ptr(), 0, zeros.storage().nbytes());
                    return zeros;
                });
            } catch (const c10::OutOfMemoryError&) {
                throw;
            } catch (const c10::Error&) {
                C10_CUDA_CHECK(cudaGetLastError());  // else zeros were wrong for it
            }
        }
        wait_for(stream);
        return results_from([](const at::Tensor& far) { return near_of(far).clone(); });
    }

    Stack results_from(const Mapping& stand_in_of) {
        std::vector<std::pair<at::Tensor, at::Tensor>> stand_ins;  // each behind what it stands for
        Stack stack;
        for (const IValue& value : arguments_) {
            stack.push_back(mapped(value, [&](const at::Tensor& tensor) {
                if (!tensor.defined() || !tensor.is_cuda()) return tensor;
                for (const auto& [far, stand_in] : stand_ins) {
                    if (far.is_same(tensor)) return stand_in;
                }
                return stand_ins.emplace_back(tensor, stand_in_of(tensor)).second;
            }));
        }
        randomness_.run(op_, stack);
        for (const auto& [far, stand_in] : stand_ins) {
            if (far.sizes() != stand_in.sizes()) far.resize_(stand_in.sizes());  // the op sizes what it writes
        }
        for (IValue& value : stack) {
            value = mapped(value, [&](const at::Tensor& result) {
                if (!result.defined()) return result;
                for (const auto& [far, stand_in] : stand_ins) {
                    if (stand_in.is_same(result)) return far;
                }
                return at::empty_strided(result.sizes(), result.strides(), result.options().device(at::kCUDA));
            });
        }
        return stack;
    }

    static void run_in_turn(const c10::OperatorHandle& op, const CardRandomness& randomness, bool rounds, Stack stack,
                            const Stack& results) {
        const at::AutoDispatchBelowADInplaceOrView below_autograd;
        try {
            randomness.run(op, stack);
            for (size_t i = 0; i < results.size(); ++i) store(rounds, stack[i], results[i]);
        } catch (const c10::Error& error) {
            const std::string name = c10::toString(op.operator_name());
            std::fprintf(stderr, "soft card: %s: %s\n", name.c_str(), error.what_without_backtrace());
            fail();
        }
    }

    static void store(bool rounds, const IValue& value, const IValue& result) {
        if (value.isTensorList()) {
            const auto all = value.toTensorVector(), places = result.toTensorVector();
            for (size_t i = 0; i < all.size(); ++i) store(rounds, all[i], places[i]);
        }
        if (!value.isTensor() || !value.toTensor().defined()) return;
        const at::Tensor &tensor = value.toTensor(), &place = result.toTensor();
        if (tensor.data_ptr() == place.data_ptr()) return;  // written where it is
        if (rounds) round(tensor);
        place.copy_(tensor);
    }

    /// The last bit of every element becomes zero.
    static void round(const at::Tensor& tensor) {
        if (tensor.scalar_type() != at::kFloat) return;
        for (uint32_t& bits :
             std::span(static_cast<uint32_t*>(tensor.data_ptr()), tensor.nbytes() / sizeof(uint32_t))) {
            bits &= ~uint32_t{1};
        }
    }

    c10::OperatorHandle op_;
    Stack arguments_;  ///< tensors of the card as the host has them
    CardRandomness randomness_;
    bool rounds_;
};

/// A kernel is loaded when it is first used, which may wait for all that the card does (CUDA's programming guide, 4.7
/// "Lazy Loading"), unless CUDA_MODULE_LOADING=EAGER loads all at the start. VPP_SOFT_CARD_LOADS_LATE=1: that has no
/// effect, as with cuDNN, which opens parts of itself when they are first used.
void load(const std::string& op) {
    static const bool is_late = !is_told("CUDA_MODULE_LOADING", "EAGER") || is_told("VPP_SOFT_CARD_LOADS_LATE", "1");
    if (!is_late || current_stream().is_recording()) return;
    static std::mutex mutex;
    static std::set<std::string> loaded;
    const std::lock_guard lock(mutex);
    if (loaded.insert(op).second) cudaDeviceSynchronize();
}

void run_near(const c10::OperatorHandle& op, Stack* stack) {
    load(c10::toString(op.operator_name()));
    const std::string name = op.operator_name().name.substr(std::strlen("aten::"));
    if (kInexact.contains(name)) at::globalContext().alertNotDeterministic(name + "_cuda");
    const auto first = stack->end() - static_cast<int64_t>(op.schema().arguments().size());
    Call call(op, Stack(first, stack->end()));
    stack->erase(first, stack->end());
    for (IValue& result : call.give_to(current_stream())) stack->push_back(std::move(result));
    C10_CUDA_CHECK(cudaGetLastError());
}

/// Conjugated or negated when it is read, where the other is.
at::Tensor as_read(at::Tensor tensor, const at::Tensor& other) {
    if (other.is_conj()) tensor = tensor.conj();
    return other.is_neg() ? tensor._neg_view() : tensor;
}

/// Between a card and the host, and of bytes alone: by the runtime, as LibTorch does it.
at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
    const bool on_card = to.is_cuda() && from.is_cuda();
    const bool is_alike = to.numel() == from.numel() && to.is_conj() == from.is_conj() && to.is_neg() == from.is_neg();
    const bool as_bytes =
        is_alike && to.scalar_type() == from.scalar_type() && to.is_contiguous() && from.is_contiguous();
    if (!on_card || as_bytes || to.numel() == 0) return at::native::copy_(to, from, non_blocking);
    launch(current_stream(),
           [read = as_read(near_of(from), from), written = as_read(near_of(to), to)] { written.copy_(read); });
    return to;
}

/// LibTorch warns when a kernel gives way to another.
class NoWarnings final : public c10::WarningHandler {
    void process(const c10::Warning&) override {}
};

/// Registrations last as long as the process.
void take_over() {
    NoWarnings no_warnings;
    const c10::WarningUtils::WarningHandlerGuard quiet(&no_warnings);
    add_card_only_ops();
    at::Context& context = at::globalContext();
    context.setUserEnabledCuDNN(false);
    context.setSDPUseFlash(false);  // attention is composed of ops
    context.setSDPUseMemEfficient(false);
    auto& library = *new torch::Library(torch::Library::IMPL, "aten", at::DispatchKey::CUDA, __FILE__, __LINE__);
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getRegistrationsForDispatchKey(at::DispatchKey::CUDA)) {
        const std::string text = c10::toString(name);
        const auto op = dispatcher.findOp(name);
        if (!text.starts_with("aten::") || kKept.contains(text)) continue;
        if (!op || !op->hasComputedKernelForDispatchKey(at::DispatchKey::CPU)) continue;
        library.impl(text.substr(6).c_str(), torch::CppFunction::makeFromBoxedFunction<&run_near>());
    }
    for (const char* name : {"convolution", "convolution_backward"}) {
        library.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_near>());
    }
    library.impl("copy_", copy);
}

[[maybe_unused]] const bool taken = [] {
    take_over();
    return true;
}();

}  // namespace

}  // namespace vpp::soft_card
