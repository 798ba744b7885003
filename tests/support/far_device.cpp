#include "support/far_device.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/Operators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <malloc.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "base/clock_alignment.hpp"
#include "device/device.hpp"

namespace vpp::test {

namespace {

constexpr at::DeviceType kFar = at::DeviceType::PrivateUse1;
constexpr at::DispatchKeySet kFarKeys(at::DispatchKey::PrivateUse1);
/// User addresses end below bit 47; with this bit turned an address of the heap is one where nothing is.
constexpr uintptr_t kFarBit = uintptr_t{1} << 46;
constexpr size_t kAlignment = 64;

std::atomic<int64_t> g_num_copies{0}, g_num_give_backs{0};

void* turned(const void* address) {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) ^ kFarBit);
}

at::Device device() {
    return {kFar, 0};
}

class FarAllocator final : public c10::DeviceAllocator {
  public:
    c10::DataPtr allocate(size_t num_bytes) override {
        if (num_bytes == 0) return {nullptr, nullptr, &release, device()};
        void* near = std::aligned_alloc(kAlignment, (num_bytes + kAlignment - 1) / kAlignment * kAlignment);
        TORCH_CHECK(near != nullptr, "out of far memory");
        count(static_cast<int64_t>(malloc_usable_size(near)));
        return {turned(near), near, &release, device()};
    }
    c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
    void copy_data(void* to, const void* from, size_t num_bytes) const override {
        std::memcpy(turned(to), turned(from), num_bytes);
    }

    bool initialized() override { return true; }
    void emptyCache(c10::MempoolId_t) override { ++g_num_give_backs; }
    void recordStream(const c10::DataPtr&, c10::Stream) override {}
    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
        const std::lock_guard lock(mutex_);
        c10::CachingDeviceAllocator::DeviceStats stats;
        stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)] = bytes_;
        return stats;
    }
    void resetAccumulatedStats(c10::DeviceIndex) override {}
    void resetPeakStats(c10::DeviceIndex) override {
        const std::lock_guard lock(mutex_);
        bytes_.reset_peak();
    }

  private:
    static void count(int64_t bytes) {
        const std::lock_guard lock(mutex_);
        bytes > 0 ? bytes_.increase(static_cast<size_t>(bytes)) : bytes_.decrease(static_cast<size_t>(-bytes));
    }
    static void release(void* near) {
        if (near != nullptr) count(-static_cast<int64_t>(malloc_usable_size(near)));
        std::free(near);
    }

    static inline std::mutex mutex_;  // a deleter is a plain function
    static inline c10::CachingAllocator::Stat bytes_;
};

FarAllocator& allocator() {
    static FarAllocator far;
    return far;
}

class FarGuard final : public c10::impl::DeviceGuardImplInterface {
  public:
    at::DeviceType type() const override { return kFar; }
    at::Device exchangeDevice(at::Device) const override { return device(); }
    at::Device getDevice() const override { return device(); }
    void setDevice(at::Device) const override {}
    void uncheckedSetDevice(at::Device) const noexcept override {}
    c10::Stream getStream(at::Device) const override { return stream(); }
    c10::Stream getDefaultStream(at::Device) const override { return stream(); }
    c10::Stream getStreamFromGlobalPool(at::Device, bool) const override { return stream(); }
    c10::Stream getNewStream(at::Device, int) const override { return stream(); }
    c10::Stream exchangeStream(c10::Stream) const override { return stream(); }
    c10::DeviceIndex deviceCount() const noexcept override { return 1; }
    // All is done when a call returns. An event is the moment at which it was recorded.
    void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
        if (*event == nullptr) *event = new int64_t;
        *static_cast<int64_t*>(*event) = steady_nanoseconds();
    }
    void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<int64_t*>(event); }
    double elapsedTime(void* from, void* to, c10::DeviceIndex) const override {
        return static_cast<double>(*static_cast<int64_t*>(to) - *static_cast<int64_t*>(from)) / 1e6;
    }
    void block(void*, const c10::Stream&) const override {}
    bool queryEvent(void*) const override { return true; }
    bool queryStream(const c10::Stream&) const override { return true; }
    void synchronizeStream(const c10::Stream&) const override {}
    void synchronizeEvent(void*) const override {}
    void synchronizeDevice(c10::DeviceIndex) const override {}

  private:
    static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, device()); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, FarGuard);

class FarHooks final : public at::PrivateUse1HooksInterface {
  public:
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(at::DeviceIndex) const override { return true; }
    at::DeviceIndex deviceCount() const override { return 1; }
    at::DeviceIndex getCurrentDevice() const override { return 0; }
    void setCurrentDevice(at::DeviceIndex) const override {}
    at::DeviceIndex exchangeDevice(at::DeviceIndex) const override { return 0; }
    at::DeviceIndex maybeExchangeDevice(at::DeviceIndex) const override { return 0; }
    const at::Generator& getDefaultGenerator(at::DeviceIndex) const override { return generator_; }
    void resizePrivateUse1Bytes(const c10::Storage& storage, size_t num_bytes) const override {
        c10::DataPtr larger = allocator().allocate(num_bytes);
        const size_t kept = std::min(num_bytes, storage.nbytes());
        if (kept > 0) allocator().copy_data(larger.get(), storage.data(), kept);
        storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(larger));
        storage.unsafeGetStorageImpl()->set_nbytes(num_bytes);
    }

  private:
    at::Generator generator_ = at::detail::createCPUGenerator(67);
};

/// The far tensor's memory as a tensor of the CPU.
at::Tensor near(const at::Tensor& tensor) {
    if (tensor.is_cpu()) return tensor;
    if (tensor.numel() == 0) return at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
    return at::from_blob(turned(tensor.unsafeGetTensorImpl()->data()), tensor.sizes(), tensor.strides(),
                         tensor.options().device(at::kCPU).requires_grad(false));
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
    return at::detail::empty_generic(size, &allocator(), kFarKeys, at::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
    return at::detail::empty_strided_generic(size, stride, &allocator(), kFarKeys, at::dtype_or_default(dtype));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
    g_num_copies += from.device() != to.device() ? 1 : 0;
    near(to).copy_(near(from));
    return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
    if (to.sizes() != from.sizes()) to.resize_(from.sizes());
    return copy_from(from, to, false);
}

at::Scalar local_scalar_dense(const at::Tensor& tensor) {
    ++g_num_copies;
    return at::_local_scalar_dense(near(tensor));
}

// Convolutions of unknown devices go to ops of their own, which have no kernel of the CPU.
at::Tensor convolve(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                    c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                    bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups) {
    const auto near_bias = bias && bias->defined() ? std::optional(bias->cpu()) : std::nullopt;
    return at::convolution_symint(input.cpu(), weight.cpu(), near_bias, stride, padding, dilation, transposed,
                                  output_padding, groups)
        .to(device());
}

using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

ThreeTensors convolve_backward(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                               c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                               bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups,
                               std::array<bool, 3> wanted) {
    const std::vector<c10::SymInt> bias_sizes{weight.sym_size(transposed ? 1 : 0) *
                                              (transposed ? groups : c10::SymInt(1))};
    auto [of_input, of_weight, of_bias] = at::convolution_backward_symint(
        gradient.cpu(), input.cpu(), weight.cpu(), at::OptionalSymIntArrayRef(bias_sizes), stride, padding, dilation,
        transposed, output_padding, groups, wanted);
    for (at::Tensor* made : {&of_input, &of_weight, &of_bias}) {
        if (made->defined()) *made = made->to(device());
    }
    return {of_input, of_weight, of_bias};
}

std::optional<at::Tensor> near(const std::optional<at::Tensor>& tensor) {
    return tensor && tensor->defined() ? std::optional(near(*tensor)) : std::nullopt;
}

/// Its schema does not say that it writes the running statistics.
ThreeTensors batch_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                        const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& running_mean,
                        const std::optional<at::Tensor>& running_var, bool training, double momentum, double eps) {
    const auto [output, mean, inverse] = at::native_batch_norm(
        input.cpu(), near(weight), near(bias), near(running_mean), near(running_var), training, momentum, eps);
    return {output.to(device()), mean.to(device()), inverse.to(device())};
}

/// Random ops draw from the far device's own generator, though a kernel of the CPU runs them.
class FarRandomness {
  public:
    explicit FarRandomness(const c10::OperatorHandle& op) : is_random_(op.hasTag(at::Tag::nondeterministic_seeded)) {
        if (is_random_) swap_states();
    }
    ~FarRandomness() {
        if (is_random_) swap_states();
    }
    FarRandomness(const FarRandomness&) = delete;
    FarRandomness& operator=(const FarRandomness&) = delete;

  private:
    static void swap_states() {
        at::Generator near = at::detail::getDefaultCPUGenerator();
        at::Generator far = at::globalContext().defaultGenerator(device());
        const at::Tensor of_near = near.get_state(), of_far = far.get_state();
        near.set_state(of_far);
        far.set_state(of_near);
    }
    bool is_random_;
};

/// The copies are of sizes that some kernels warn about.
class NoWarnings final : public c10::WarningHandler {
    void process(const c10::Warning&) override {}
};

void run_near(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    static NoWarnings no_warnings;
    const c10::WarningUtils::WarningHandlerGuard quiet(&no_warnings);
    const FarRandomness randomness(op);
    at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
    library.impl("empty.memory_format", empty);
    library.impl("empty_strided", empty_strided);
    library.impl("_copy_from", copy_from);
    library.impl("_copy_from_and_resize", copy_from_and_resize);
    library.impl("_local_scalar_dense", local_scalar_dense);
    library.impl("convolution_overrideable", convolve);
    library.impl("convolution_backward_overrideable", convolve_backward);
    library.impl("native_batch_norm", batch_norm);
    library.impl("as_strided", at::native::as_strided_tensorimpl);
    library.impl("view", at::native::view);
    library.impl("_reshape_alias", at::native::_reshape_alias);
    library.impl("resize_", at::native::resize_);
    library.impl("set_.source_Storage_storage_offset", at::native::set_storage_cpu_);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_near>());
}

// LibTorch's autocast for cards, from its own macros, which want these names and that of m.
#define VPP_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define VPP_FLOAT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define VPP_FLOAT_RESULT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define VPP_WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
    using at::DimnameList, at::IntArrayRef, at::Scalar, at::ScalarType, at::Tensor;
    AT_FORALL_LOWER_PRECISION_FP(VPP_LOWER);
    AT_FORALL_FP32(VPP_FLOAT);
    AT_FORALL_FP32_SET_OPT_DTYPE(VPP_FLOAT_RESULT);
    AT_FORALL_PROMOTE(VPP_WIDEST);
    AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE);
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
    library.fallback(torch::CppFunction::makeFallthrough());
}

}  // namespace

at::Device far_device() {
    static std::once_flag once;
    std::call_once(once, [] {
        c10::register_privateuse1_backend("far");
        c10::SetAllocator(kFar, &allocator());
        at::RegisterPrivateUse1HooksInterface(new FarHooks);  // LibTorch keeps it to the end
    });
    return device();
}

at::Device test_device() {
    const char* name = std::getenv("VPP_TEST_DEVICE");
    if (name == nullptr || std::string(name) == "cpu") return at::kCPU;
    if (std::string(name) == "far") return far_device();
    const at::Device device(at::Device(name).type(), 0);
    ::setenv(kCublasVariable, kCublasWorkspace, /*overwrite=*/0);
    start_device(device);
    use_exact_kernels(device);  // as a job on a card does
    return device;
}

at::Device device_beside_cpu() {
    const at::Device device = test_device();
    return device.is_cpu() ? far_device() : device;
}

int64_t num_far_copies() {
    return g_num_copies;
}

int64_t num_far_give_backs() {
    return g_num_give_backs;
}

}  // namespace vpp::test
