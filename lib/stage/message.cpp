#include "stage/message.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <c10/util/strides.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <cstring>
#include <optional>

#include "base/error.hpp"
#include "device/memory_begin.hpp"
#include "graph/ivalue_tensors.hpp"
#include "graph/memory_layout.hpp"
#include "graph/torch_dtype.hpp"
#include "graph/torch_errors.hpp"

namespace vpp {

namespace {

constexpr size_t kAlignment = 64;  // of the payload, as LibTorch allocates
constexpr int64_t kMaxDims = 64;
constexpr int64_t kMaxExtent = int64_t{1} << 40;  // elements; no tensor of a message has more

/// How the payload holds the elements.
enum class Layout : uint8_t {
    Undefined,  ///< no tensor
    Memory,     ///< the memory from first to last element, in its own strides
    Elements,   ///< the elements in row-major order; strides leave gaps
};

struct TensorHeader {
    Layout layout = Layout::Undefined;
    uint8_t requires_grad = 0;
    uint8_t is_of_host = 0;  ///< on the sender: numbers that a trace has as tensors, which kernels take apart
    uint8_t is_complex = 0;
    uint8_t is_conjugate = 0;  ///< the imaginary parts have the other sign in memory
    DType dtype = DType::F32;  ///< of the parts of a complex one
    uint16_t begin_bytes = 0;  ///< of its first element (device/memory_begin.hpp)
    int64_t num_dims = 0;
    int64_t payload_bytes = 0;
};

/// The type of the elements; nothing where there is none.
std::optional<at::ScalarType> type_of(const TensorHeader& header) {
    if (!is_known(header.dtype)) return std::nullopt;
    const at::ScalarType type = to_torch(header.dtype);
    if (header.is_complex == 0) return type;
    const bool has_complex = type == at::kHalf || type == at::kFloat || type == at::kDouble;
    return has_complex ? std::optional(c10::toComplexType(type)) : std::nullopt;
}

size_t align(size_t num_bytes) {
    return (num_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// The tensor with every expanded dim cut down to one element.
at::Tensor base_of(const at::Tensor& tensor) {
    return tensor.as_strided(base_sizes_of(tensor), tensor.strides());
}

void check_fits(size_t num_bytes, size_t limit_bytes, const std::string& what) {
    if (num_bytes <= limit_bytes) return;
    check(false, "the value '" + what + "' is sent in " + std::to_string(num_bytes) + " bytes, of " +
                     std::to_string(limit_bytes) + " that its shape allows");
}

Buffer make_message(const Bytes& header, std::span<const std::byte> payload, size_t limit_bytes,
                    const std::string& what) {
    const size_t offset = align(header.size());
    check_fits(offset + payload.size(), limit_bytes, what);
    Buffer message(offset + payload.size());
    std::memcpy(message.bytes().data(), header.data(), header.size());
    if (!payload.empty()) std::memcpy(message.bytes().data() + offset, payload.data(), payload.size());
    return message;
}

bool is_unshared(const at::Tensor& tensor) {
    return tensor.use_count() == 1 && tensor.storage().use_count() == 1;
}

std::vector<int64_t> read_dims(ByteReader& reader, int64_t count) {
    std::vector<int64_t> dims;
    for (int64_t i = 0; i < count; ++i) dims.push_back(reader.get<int64_t>());
    return dims;
}

/// Whether a tensor can have these dims: none negative, expanded dims of one element and stride 0, an extent that fits.
bool is_possible(at::IntArrayRef sizes, at::IntArrayRef base_sizes, at::IntArrayRef strides) {
    int64_t extent = 1;
    for (size_t i = 0; i < sizes.size(); ++i) {
        const bool expanded = base_sizes[i] == 1 && strides[i] == 0;
        const bool ascends = sizes[i] >= 0 && base_sizes[i] >= 0 && strides[i] >= 0 && sizes[i] <= kMaxExtent;
        if (!ascends || (sizes[i] != base_sizes[i] && !expanded)) return false;
        if (base_sizes[i] <= 1) continue;
        if (strides[i] > kMaxExtent / (base_sizes[i] - 1)) return false;
        extent += (base_sizes[i] - 1) * strides[i];
        if (extent > kMaxExtent) return false;
    }
    return true;
}

[[noreturn]] void bad_message(const std::string& what) {
    throw Error(ErrorKind::BadData, "the message for '" + what + "' does not hold what it says");
}

at::Tensor on_host(const at::Tensor& elements) {
    const auto options = elements.options().device(at::kCPU).pinned_memory(elements.is_cuda());
    return at::empty(elements.sizes(), options).copy_(elements);
}

}  // namespace

MemoryPart part_of(at::Tensor tensor, size_t num_bytes) {
    auto* data = static_cast<std::byte*>(tensor.data_ptr());
    const bool is_on_device = !tensor.is_cpu();
    return {std::shared_ptr<std::byte>(std::make_shared<at::Tensor>(std::move(tensor)), data), num_bytes, is_on_device};
}

Buffer encode_tensor(const at::Tensor& tensor, size_t limit_bytes, const std::string& what, Contents contents) {
    const bool is_own = contents == Contents::SharedPart || (tensor.defined() && is_unshared(tensor));
    TensorHeader header;
    ByteWriter writer;
    if (!tensor.defined()) {
        writer.put(header);
        return make_message(writer.take(), {}, limit_bytes, what);
    }
    at::Tensor base = base_of(tensor.is_conj() ? tensor.detach().conj() : tensor.detach());
    const bool dense = base.is_non_overlapping_and_dense();
    header.layout = dense || overlaps(base.sizes(), base.strides()) ? Layout::Memory : Layout::Elements;
    header.requires_grad = tensor.requires_grad();
    header.is_of_host = tensor.is_cpu();
    header.is_complex = tensor.is_complex();
    header.is_conjugate = tensor.is_conj();
    header.dtype = from_torch(c10::toRealValueType(tensor.scalar_type()));
    header.begin_bytes = static_cast<uint16_t>(begin_bytes_of(tensor));
    header.num_dims = tensor.dim();
    const std::vector<int64_t> strides = base.strides().vec(), base_sizes = base.sizes().vec();
    if (header.layout == Layout::Elements) base = base.contiguous();
    const int64_t extent = memory_extent(base.sizes(), base.strides());
    header.payload_bytes = extent * static_cast<int64_t>(base.itemsize());
    writer.put(header);
    for (int64_t size : tensor.sizes()) writer.put(size);
    for (int64_t size : base_sizes) writer.put(size);
    for (int64_t stride : strides) writer.put(stride);
    const auto num_bytes = static_cast<size_t>(header.payload_bytes);
    if (contents != Contents::InBytes && num_bytes > 0) {
        check_fits(align(writer.size()) + num_bytes, limit_bytes, what);
        Buffer message = make_message(writer.take(), {}, limit_bytes, what);
        const at::Tensor elements = base.as_strided({extent}, {1});
        if (contents == Contents::HostPart) {
            base = on_host(elements);
        } else if (!is_own && header.layout == Layout::Memory) {
            base = elements.clone();
        }
        message.set_part(part_of(std::move(base), num_bytes));
        return message;
    }
    // The memory as it lies, gaps and elements that share a place included.
    if (!base.is_cpu()) base = base.as_strided({extent}, {1}).cpu();
    const auto* data = static_cast<const std::byte*>(base.const_data_ptr());
    return make_message(writer.take(), {data, num_bytes}, limit_bytes, what);
}

ReceivedTensor decode_tensor(const Buffer& buffer, const std::string& what, at::Device device) {
    ByteReader reader(buffer.bytes());
    const auto header = reader.get<TensorHeader>();
    if (header.layout == Layout::Undefined) return {};
    const auto type = type_of(header);
    const bool known = header.layout <= Layout::Elements && type && (header.is_complex || !header.is_conjugate);
    if (!known || header.num_dims < 0 || header.num_dims > kMaxDims) bad_message(what);
    const auto sizes = read_dims(reader, header.num_dims), base_sizes = read_dims(reader, header.num_dims),
               strides = read_dims(reader, header.num_dims);
    if (!is_possible(sizes, base_sizes, strides)) bad_message(what);
    const size_t offset = align(sizeof(TensorHeader) + static_cast<size_t>(header.num_dims) * 3 * sizeof(int64_t));
    const bool compact = header.layout == Layout::Elements;
    const int64_t extent = compact ? num_elements(base_sizes) : memory_extent(base_sizes, strides);
    const MemoryPart& part = buffer.part();
    const size_t element_bytes = c10::elementSize(*type);
    const size_t room_bytes = part.data ? part.num_bytes : buffer.bytes().size() - offset;
    if (offset > buffer.bytes().size() || (part.data && offset != buffer.bytes().size()) ||
        extent * static_cast<int64_t>(element_bytes) != header.payload_bytes ||
        static_cast<size_t>(header.payload_bytes) != room_bytes || header.begin_bytes % element_bytes != 0) {
        bad_message(what);
    }
    // Where the elements lie: in the bytes, which are the CPU's, or in the part, which is the device's.
    const std::shared_ptr<std::byte>& owner = part.data ? part.data : buffer.owner();
    std::byte* data = part.data ? part.data.get() : owner.get() + offset;
    const at::Device place = part.data ? device : at::kCPU;
    const at::Device target = header.is_of_host != 0 ? at::kCPU : device;
    const auto options = at::TensorOptions().dtype(*type).device(place);
    const auto over_memory = [&](at::IntArrayRef shape, at::IntArrayRef steps) {
        const auto keep_alive = [owner](void*) {};
        return at::from_blob(data, shape, steps, keep_alive, options, place);
    };
    const auto as_sent = [&](at::Tensor made) {
        if (header.is_conjugate) made._set_conj(true);
        return ReceivedTensor{std::move(made), header.requires_grad != 0};
    };
    const bool begins_right = extent == 0 || begin_bytes_of(data, place) == header.begin_bytes;
    if (!compact && place == target && begins_right) return as_sent(over_memory(sizes, strides));
    at::Tensor tensor;
    try {
        tensor = empty_beginning_at(header.begin_bytes, base_sizes, strides, options.device(target));
        if (compact) {
            tensor.copy_(over_memory(base_sizes, c10::contiguous_strides(base_sizes)));
        } else {
            tensor.as_strided({extent}, {1}).copy_(over_memory({extent}, {1}));
        }
    } catch (const c10::OutOfMemoryError&) {
        throw;
    } catch (const c10::Error& error) {
        if (!target.is_cpu()) throw_if_known(error);  // a failed card is often met by the first copy behind it
        bad_message(what);                            // gaps that no memory can hold, elements that lie on each other
    }
    // Not a view: autograd treats views apart, and this tensor stands for one that was none.
    if (base_sizes != sizes) {
        tensor = at::empty({0}, tensor.options()).set_(tensor.storage(), tensor.storage_offset(), sizes, strides);
    }
    return as_sent(std::move(tensor));
}

Buffer encode_values(const std::vector<c10::IValue>& values, size_t limit_bytes, const std::string& what) {
    std::vector<c10::IValue> plain;
    const at::Tensor empty = at::empty({0});
    for (const c10::IValue& value : values) {
        // What the JIT puts in place of the result of a branch that returned early; nothing reads it.
        const bool is_nothing = value.tagKind() == "Uninitialized";
        plain.push_back(is_nothing ? c10::IValue() : map_tensors(value, [&](const at::Tensor&) { return empty; }));
    }
    std::vector<at::Tensor> table;
    const std::vector<char> pickled = torch::jit::pickle(c10::ivalue::Tuple::create(std::move(plain)), &table);
    ByteWriter writer;
    writer.put(static_cast<uint64_t>(pickled.size()));
    writer.put(static_cast<uint64_t>(table.size()));
    for (const at::Tensor& tensor : table) writer.put(static_cast<uint8_t>(tensor.defined()));
    return make_message(writer.take(), std::as_bytes(std::span(pickled)), limit_bytes, what);
}

std::vector<c10::IValue> decode_values(const Buffer& buffer, at::Device device) {
    ByteReader reader(buffer.bytes());
    const auto num_bytes = reader.get<uint64_t>(), num_tensors = reader.get<uint64_t>();
    const size_t size_bytes = buffer.bytes().size();
    if (num_tensors > size_bytes) bad_message("plain values");
    const size_t offset = align(2 * sizeof(uint64_t) + num_tensors);
    if (size_bytes < offset || num_bytes != size_bytes - offset) bad_message("plain values");
    std::vector<at::Tensor> table(num_tensors);
    for (at::Tensor& tensor : table) {
        if (reader.get<uint8_t>() != 0) tensor = at::empty({0});
    }
    const auto* data = reinterpret_cast<const char*>(buffer.bytes().data() + offset);
    try {
        const c10::IValue sent = torch::jit::unpickle(data, num_bytes, nullptr, table);
        return map_leaves(sent,
                          [&](const c10::IValue& leaf) {
                              return leaf.isDevice() && !leaf.toDevice().is_cpu() ? c10::IValue(device) : leaf;
                          })
            .toTupleRef()
            .elements()
            .vec();
    } catch (const std::exception&) {
        bad_message("plain values");
    }
}

}  // namespace vpp
