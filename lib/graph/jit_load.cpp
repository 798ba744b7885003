#include "graph/jit_load.hpp"

#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <set>

#include "base/bad_data.hpp"
#include "base/error.hpp"
#include "base/live_bytes.hpp"
#include "graph/module_names.hpp"
#include "graph/operator_check.hpp"
#include "graph/torch_errors.hpp"

namespace vpp {

namespace {

using caffe2::serialize::PyTorchStreamReader;
using caffe2::serialize::ReadAdapterInterface;

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

/// Where LibTorch finds the weights, by offset.
std::vector<WeightRecord> find_weights(const std::shared_ptr<const Archive>& archive) {
    std::vector<WeightRecord> none, found;
    PyTorchStreamReader reader(std::make_shared<SkippingReader>(archive, none));
    for (const auto& [name, record] : archive->records()) {
        if (!name.starts_with("data/") || record.size_bytes == 0) continue;
        if (!record.stored) {
            refuse_data(archive->path().string(),
                        "the weight record " + name + " is compressed; save the model with torch.jit.save");
        }
        found.push_back({name, reader.getRecordOffset(name), record.size_bytes});
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
    return found;
}

/// Two readers of zip files can be made to see different things in one file: what LibTorch is about to read must be
/// what was judged.
void check_same_view(const Archive& archive, const std::shared_ptr<ReadAdapterInterface>& file) {
    PyTorchStreamReader reader(file);
    const std::vector<std::string> names = reader.getAllRecords();
    const std::set<std::string> seen(names.begin(), names.end());
    bool same = seen.size() == names.size() && seen.size() == archive.records().size();
    for (const auto& [name, record] : archive.records()) same = same && seen.contains(name);
    for (const auto& [name, text] : archive.program()) {
        if (!same) break;
        const auto [data, num_bytes] = reader.getRecord(name);
        same = num_bytes == text.size() && std::memcmp(data.get(), text.data(), num_bytes) == 0;
    }
    if (!same)
        refuse_data(archive.path().string(),
                    "LibTorch reads other records than the archive's directory names; export it again");
}

}  // namespace

torch::jit::Module load_module(const std::shared_ptr<const Archive>& archive, const std::vector<std::string>& trusted,
                               std::vector<LoadedFile>& files) {
    check_operators(*archive, trusted);
    try {
        std::vector<WeightRecord>& records = files.emplace_back(LoadedFile{archive, find_weights(archive)}).records;
        std::shared_ptr<ReadAdapterInterface> reader = std::make_shared<SkippingReader>(archive, records);
        check_same_view(*archive, reader);
        const live_bytes::Unfilled unfilled;
        torch::jit::Module module = torch::jit::load(reader, at::kCPU, /*load_debug_files=*/true);
        check_module_names(module, archive->path().string());
        return module;
    } catch (const Error&) {
        throw;
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        throw_if_known(error);
        refuse_data(archive->path().string(),
                    "LibTorch cannot load this model: " + printable(first_line(error.what())));
    }
}

}  // namespace vpp
