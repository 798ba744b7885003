#include "checkpoint/safetensors.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace vpp {

namespace {

// What is written in one go, and is on the disk before the next piece: so the fsync at the end stays short, and a
// watcher sees that the disk works.
constexpr size_t kPieceBytes = size_t{256} << 20;

/// Writes and hashes in one pass.
class HashedFile {
  public:
    explicit HashedFile(const std::filesystem::path& path) : file_(path) {}

    void write(std::span<const std::byte> bytes) {
        file_.write(bytes);
        hasher_.add(bytes);
        size_bytes_ += bytes.size();
    }

    void sync() { file_.sync(); }

    WrittenFile finish() {
        file_.finish();
        return {size_bytes_, hasher_.digest()};
    }

  private:
    OutputFile file_;
    Hasher hasher_;
    uint64_t size_bytes_ = 0;
};

/// `copied` holds those that are not in this process's memory until the next call.
std::span<const std::byte> piece_of(const TensorBytes& tensor, uint64_t begin, uint64_t num_bytes,
                                    std::vector<std::byte>& copied) {
    if (!tensor.read) return tensor.bytes.subspan(begin, num_bytes);
    copied.resize(num_bytes);
    tensor.read(begin, copied);
    return copied;
}

/// Larger elements first keeps every tensor aligned without padding, which the format does not allow.
std::vector<const TensorBytes*> writing_order(const std::vector<TensorBytes>& tensors) {
    std::vector<const TensorBytes*> order;
    for (const TensorBytes& tensor : tensors) {
        check(tensor.read || tensor.bytes.size() == tensor.size_bytes(),
              "a tensor's bytes are those of dtype and shape");
        order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(), [](const TensorBytes* a, const TensorBytes* b) {
        const size_t a_size = size_of(a->dtype), b_size = size_of(b->dtype);
        return a_size != b_size ? a_size > b_size : a->name < b->name;
    });
    std::vector<std::string_view> names;
    for (const TensorBytes* tensor : order) names.push_back(tensor->name);
    std::sort(names.begin(), names.end());
    check(std::adjacent_find(names.begin(), names.end()) == names.end(), "tensor names in a shard are distinct");
    return order;
}

}  // namespace

WrittenFile write_safetensors(const std::filesystem::path& path, const std::vector<TensorBytes>& tensors,
                              const std::map<std::string, std::string>& metadata, const StopHook& stop) {
    const std::vector<const TensorBytes*> order = writing_order(tensors);
    const std::string header = make_safetensors_header(order, metadata);
    HashedFile file(path);
    file.write(std::as_bytes(std::span(header)));
    reached(stop, "shard.header_written");
    std::vector<std::byte> copied;
    for (const TensorBytes* tensor : order) {
        const uint64_t size_bytes = tensor->size_bytes();
        uint64_t begin = 0;
        for (; size_bytes - begin > kPieceBytes; begin += kPieceBytes) {
            file.write(piece_of(*tensor, begin, kPieceBytes, copied));
            file.sync();
            reached(stop, "shard.piece_written");
        }
        file.write(piece_of(*tensor, begin, size_bytes - begin, copied));
        reached(stop, "shard.tensor_written");
    }
    const WrittenFile written = file.finish();
    reached(stop, "shard.synced");
    return written;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : map_(path), header_(parse_safetensors(map_.bytes(), path.string())) {}

std::optional<TensorBytes> SafetensorsFile::find(const std::string& name) const {
    const auto& entries = header_.entries;
    const auto found = std::lower_bound(entries.begin(), entries.end(), name,
                                        [](const SafetensorsEntry& e, const std::string& n) { return e.name < n; });
    if (found == entries.end() || found->name != name) return std::nullopt;
    const auto bytes = map_.bytes().subspan(found->begin_bytes, found->end_bytes - found->begin_bytes);
    return TensorBytes{found->name, found->dtype, found->shape, bytes};
}

}  // namespace vpp
