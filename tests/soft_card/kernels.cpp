// LibTorch's ops on a soft card: the kernels that it has for cards give way to those of the CPU, over the same bytes.
// An op runs when its stream has done what it was given before, as it would on a card. What it wrote is there late: the
// stream gets that as a task, so that another stream that does not wait for this one finds something else.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
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
const std::set<std::string> kRounded{"aten::mm",      "aten::addmm",       "aten::bmm",
                                     "aten::baddbmm", "aten::convolution", "aten::convolution_backward"};

Stream& current_stream() {
    return stream_of(c10::cuda::getCurrentCUDAStream().stream());
}

at::Tensor near_of(const at::Tensor& tensor) {
    if (tensor.numel() == 0)
        return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
    return at::from_blob(near(tensor.unsafeGetTensorImpl()->data()), tensor.sizes(), tensor.strides(),
                         tensor.options().device(at::kCPU).requires_grad(false));
}

/// The tensors of a call, each as one of the CPU with the same bytes.
class NearCall {
  public:
    NearCall(const c10::OperatorHandle& op, Stack& stack) : op_(op), stack_(stack) {
        const auto& arguments = op.schema().arguments();
        first_ = stack.size() - arguments.size();
        for (size_t i = 0; i < arguments.size(); ++i) {
            const auto* alias = arguments[i].alias_info();
            stack[first_ + i] = near_value(stack[first_ + i], alias != nullptr && alias->isWrite());
        }
    }

    void run() { op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_); }

    /// Results as tensors of the card again.
    void give_back() {
        for (const auto& pair : pairs_) resize_if_changed(pair);
        for (size_t i = first_; i < stack_.size(); ++i) stack_[i] = far_value(stack_[i]);
    }

    /// What the call has read and written, by the CPU's names.
    std::vector<at::Tensor> read() const {
        std::vector<at::Tensor> all;
        for (const Pair& pair : pairs_) {
            if (!pair.is_written && pair.near.numel() > 0) all.push_back(pair.near);
        }
        return all;
    }
    const std::vector<at::Tensor>& written() const { return written_; }

  private:
    struct Pair {
        at::Tensor near, far;
        bool is_written;
    };

    IValue near_value(const IValue& value, bool is_written) {
        if (value.isTensor()) return near_tensor(value.toTensor(), is_written);
        if (value.isDevice()) return c10::Device(at::kCPU);
        if (value.isTensorList()) {
            c10::List<at::Tensor> all;
            for (const at::Tensor& one : value.toTensorVector()) all.push_back(near_tensor(one, is_written));
            return all;
        }
        if (value.isList() && value.toListRef().size() > 0 && op_takes_optional_tensors(value)) {
            c10::List<std::optional<at::Tensor>> all;
            for (const IValue& one : value.toListRef()) {
                all.push_back(one.isNone() ? std::optional<at::Tensor>() : near_tensor(one.toTensor(), false));
            }
            return all;
        }
        return value;
    }

    static bool op_takes_optional_tensors(const IValue& value) {
        return value.toList().elementType()->isSubtypeOf(*c10::OptionalType::ofTensor());
    }

    at::Tensor near_tensor(const at::Tensor& tensor, bool is_written) {
        if (!tensor.defined()) return tensor;
        if (!tensor.is_cuda()) {
            TORCH_CHECK(tensor.dim() == 0 || kMixed.contains(c10::toString(op_.operator_name())), op_.operator_name(),
                        " got a tensor of ", tensor.device(), " among those of a card");
            return tensor;
        }
        for (Pair& pair : pairs_) {
            if (pair.far.is_same(tensor)) {
                pair.is_written |= is_written;
                return pair.near;
            }
        }
        pairs_.push_back({near_of(tensor), tensor, is_written});
        if (is_written && tensor.numel() > 0) written_.push_back(pairs_.back().near);
        return pairs_.back().near;
    }

    /// Results of ops that size what they write themselves.
    void resize_if_changed(const Pair& pair) {
        if (!pair.is_written || pair.near.sizes() == pair.far.sizes()) return;
        pair.far.resize_(pair.near.sizes());
        const at::Tensor written = near_of(pair.far);
        written.copy_(pair.near);
        written_.push_back(written);
    }

    IValue far_value(const IValue& value) {
        if (value.isTensor()) return far_tensor(value.toTensor());
        if (value.isTensorList()) {
            c10::List<at::Tensor> all;
            for (const at::Tensor& one : value.toTensorVector()) all.push_back(far_tensor(one));
            return all;
        }
        return value;
    }

    at::Tensor far_tensor(const at::Tensor& tensor) {
        if (!tensor.defined()) return tensor;
        for (const Pair& pair : pairs_) {
            if (pair.near.is_same(tensor)) return pair.far;
        }
        const at::Tensor far = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCUDA));
        if (tensor.numel() > 0) {
            // The caller's stream is where the memory may be used: it may have been another's before.
            current_stream().finish();
            const at::Tensor written = near_of(far);
            written.copy_(tensor);
            written_.push_back(written);
        }
        return far;
    }

    const c10::OperatorHandle& op_;
    Stack& stack_;
    size_t first_ = 0;
    std::vector<Pair> pairs_;
    std::vector<at::Tensor> written_;
};

/// Random ops draw from the card's generator: which numbers come is a function of its seed and offset, and it moves on.
class CardRandomness {
  public:
    CardRandomness(const c10::OperatorHandle& op, Stack& stack)
        : is_random_(op.hasTag(at::Tag::nondeterministic_seeded)) {
        if (!is_random_) return;
        at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator();
        const size_t num_arguments = op.schema().arguments().size();
        for (auto value = stack.end() - static_cast<int64_t>(num_arguments); value != stack.end(); ++value) {
            if (!value->isGenerator()) continue;
            generator = value->toGenerator();
            *value = IValue();
        }
        constexpr uint64_t kStep = 4, kFactor = 0x9E3779B97F4A7C15;
        auto* card = at::check_generator<at::CUDAGeneratorImpl>(generator);
        const uint64_t offset = card->philox_offset_per_thread();
        at::Generator host = at::detail::getDefaultCPUGenerator();
        kept_ = host.get_state();
        host.set_current_seed(card->current_seed() * kFactor + offset);
        card->set_philox_offset_per_thread(offset + kStep);
    }
    ~CardRandomness() {
        if (!is_random_) return;
        at::Generator host = at::detail::getDefaultCPUGenerator();
        host.set_state(kept_);
    }
    CardRandomness(const CardRandomness&) = delete;
    CardRandomness& operator=(const CardRandomness&) = delete;

  private:
    bool is_random_;
    at::Tensor kept_;
};

using Bytes = std::span<std::byte>;

std::vector<Bytes> bytes_of(const std::vector<at::Tensor>& tensors) {
    std::vector<Bytes> all;
    for (const at::Tensor& tensor : tensors) {
        // Others share bytes with what the call does not touch.
        if (!tensor.is_non_overlapping_and_dense()) continue;
        all.emplace_back(static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes());
    }
    return all;
}

std::vector<Digest> sums_of(const std::vector<Bytes>& all) {
    std::vector<Digest> sums;
    for (const Bytes bytes : all) sums.push_back(hash_bytes(bytes));
    return sums;
}

/// The card does late what the host has computed already: what was written is taken away until the stream brings it,
/// and what was read has to be there until then.
void leave_to_stream(const std::vector<Bytes>& read, const std::vector<Bytes>& written) {
    if (!may_be_late()) return;
    std::vector<Digest> sums = sums_of(read);
    std::vector<std::vector<std::byte>> kept;  // before anything is taken: two may be the same
    for (const Bytes bytes : written) kept.emplace_back(bytes.begin(), bytes.end());
    for (const Bytes bytes : written) std::ranges::fill(bytes, std::byte{kGarbage});
    current_stream().give([read, written, sums = std::move(sums), kept = std::move(kept)] {
        for (size_t i = 0; i < written.size(); ++i) std::ranges::copy(kept[i], written[i].begin());
        if (sums_of(read) == sums) return;
        std::fputs("soft card: what an op reads was overwritten before the op ran\n", stderr);
        std::abort();
    });
}

/// The last bit of every element is zero.
void round(const at::Tensor& tensor) {
    if (tensor.scalar_type() != at::kFloat) return;
    for (uint32_t& bits : std::span(static_cast<uint32_t*>(tensor.data_ptr()), tensor.nbytes() / sizeof(uint32_t))) {
        bits &= ~uint32_t{1};
    }
}

/// A kernel is loaded when it is first used, which may wait for all that the card does (CUDA's programming guide, 4.7
/// "Lazy Loading"), unless CUDA_MODULE_LOADING=EAGER loads all at the start.
void load(const std::string& op) {
    static const bool is_lazy = [] {
        const char* mode = std::getenv("CUDA_MODULE_LOADING");
        return mode == nullptr || std::string(mode) != "EAGER";
    }();
    if (!is_lazy) return;
    static std::mutex mutex;
    static std::set<std::string> loaded;
    const std::lock_guard lock(mutex);
    if (loaded.insert(op).second) cudaDeviceSynchronize();
}

void run_near(const c10::OperatorHandle& op, Stack* stack) {
    load(c10::toString(op.operator_name()));
    current_stream().finish();
    const CardRandomness randomness(op, *stack);
    NearCall call(op, *stack);
    call.run();
    call.give_back();
    if (kRounded.contains(c10::toString(op.operator_name()))) std::ranges::for_each(call.written(), round);
    leave_to_stream(bytes_of(call.read()), bytes_of(call.written()));
}

/// Between a card and the host, and of bytes alone: by the runtime, as LibTorch does it.
at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
    const bool on_card = to.is_cuda() && from.is_cuda();
    const bool as_bytes = to.scalar_type() == from.scalar_type() && to.is_contiguous() && from.is_contiguous();
    if (!on_card || as_bytes || to.numel() == 0) return at::native::copy_(to, from, non_blocking);
    current_stream().finish();
    const at::Tensor read = near_of(from), written = near_of(to);
    written.copy_(read);
    leave_to_stream(bytes_of({read}), bytes_of({written}));
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
