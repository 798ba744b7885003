#include "graph/model_copy.hpp"

#include <ATen/ops/full.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>

#include "base/error.hpp"
#include "device/repeated_elements.hpp"
#include "graph/initial_values.hpp"
#include "graph/jit_parameters.hpp"
#include "graph/module_names.hpp"
#include "graph/torch_errors.hpp"

namespace vpp {

namespace {

/// LibTorch's view of the mapped file.
class MappedReader : public caffe2::serialize::ReadAdapterInterface {
  public:
    explicit MappedReader(std::shared_ptr<const Archive> archive) : archive_(std::move(archive)) {}

    size_t size() const override { return archive_->bytes().size(); }

    size_t read(uint64_t pos, void* buffer, size_t num_bytes, const char*) const override {
        if (pos >= size()) return 0;
        num_bytes = std::min<uint64_t>(num_bytes, size() - pos);
        std::memcpy(buffer, archive_->bytes().data() + pos, num_bytes);
        return num_bytes;
    }

  private:
    std::shared_ptr<const Archive> archive_;
};

/// The archive compares all other records when it is opened.
void check_weights(const std::shared_ptr<const Archive>& archive) {
    caffe2::serialize::PyTorchStreamReader reader(std::make_shared<MappedReader>(archive));
    for (const auto& [name, record] : archive->records()) {
        if (!name.starts_with("data/") || record.size_bytes == 0) continue;
        archive->check_stored(name, reader.getRecordOffset(name));
    }
}

torch::jit::Module load(const std::shared_ptr<const Archive>& archive, torch::jit::ExtraFilesMap& extra_files) {
    const std::string prefix = "extra/";
    for (const auto& [name, record] : archive->records()) {
        if (name.starts_with(prefix)) extra_files[name.substr(prefix.size())] = "";
    }
    try {
        check_weights(archive);
        std::shared_ptr<caffe2::serialize::ReadAdapterInterface> reader = std::make_shared<MappedReader>(archive);
        torch::jit::Module module = torch::jit::load(reader, at::kCPU, extra_files, /*load_debug_files=*/true);
        check_module_names(module, archive->path().string());
        return module;
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        throw Error(ErrorKind::BadData, archive->path().string() + ": LibTorch cannot load this model: " +
                                            printable(first_line(error.what())));
    }
}

/// Whether some elements of it are one in memory.
bool repeats_elements(const at::Tensor& tensor) {
    return without_repeats(tensor).numel() < tensor.numel();
}

/// A parameter without data gets memory of its own; it is no number until somebody copies one into it.
void make_room(at::Tensor& parameter) {
    parameter.set_data(at::full(parameter.sizes(), std::numeric_limits<double>::quiet_NaN(), parameter.options()));
}

}  // namespace

struct ModelCopy::Impl {
    torch::jit::ExtraFilesMap extra_files;
    torch::jit::Module module;
};

ModelCopy::ModelCopy(std::shared_ptr<const Archive> archive) : impl_(std::make_unique<Impl>()) {
    impl_->module = load(archive, impl_->extra_files);
    for (JitParameter& parameter : list_parameters(impl_->module)) {
        const bool is_there = has_data(parameter.tensor, parameter.is_buffer);
        if (!is_there) make_room(parameter.tensor);
        // Training has given each element a value of its own.
        if (!parameter.is_buffer && repeats_elements(parameter.tensor)) {
            parameter.tensor.set_data(parameter.tensor.clone());
        }
        weights_.push_back({std::move(parameter.name), std::move(parameter.aliases), parameter.tensor.detach(),
                            parameter.is_buffer, is_there});
    }
}

ModelCopy::~ModelCopy() = default;
ModelCopy::ModelCopy(ModelCopy&&) noexcept = default;

void ModelCopy::write(const std::function<void(std::span<const std::byte>)>& sink) const {
    std::exception_ptr problem;
    const auto take = [&](const void* data, size_t size) -> size_t {
        if (problem) return size;
        try {
            sink({static_cast<const std::byte*>(data), size});
        } catch (...) {
            problem = std::current_exception();
        }
        return size;
    };
    torch::jit::ExportModule(impl_->module, take, impl_->extra_files);
    if (problem) std::rethrow_exception(problem);
}

}  // namespace vpp
