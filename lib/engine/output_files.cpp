#include "engine/output_files.hpp"

#include <system_error>

#include "base/error.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

bool has_rows(const at::Tensor& tensor, int64_t num_samples) {
    return tensor.dim() > 0 && tensor.size(0) == num_samples;
}

/// A .npy file has no bfloat16; float32 holds the same values.
at::Tensor as_written(const at::Tensor& tensor) {
    return (tensor.scalar_type() == at::kBFloat16 ? tensor.to(at::kFloat) : tensor).cpu().contiguous();
}

/// Shape without the samples, and dtype.
bool is_alike(const at::Tensor& a, const at::Tensor& b) {
    return a.scalar_type() == b.scalar_type() && a.dim() == b.dim() && a.sizes().slice(1) == b.sizes().slice(1);
}

}  // namespace

std::vector<int> outputs_by_sample(const Graph& graph, int64_t microbatch_size, std::vector<std::string>& left_out) {
    std::vector<int> found;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        const GraphTensor& tensor = graph.tensors[static_cast<size_t>(graph.outputs[i].tensor)];
        if (!tensor.shape.empty() && tensor.shape[0] == microbatch_size) {
            found.push_back(static_cast<int>(i));
        } else {
            left_out.push_back(graph.outputs[i].name + " " + shape_text(tensor.shape));
        }
    }
    return found;
}

std::vector<fs::path> output_paths(const Graph& graph, const std::vector<int>& outputs, const fs::path& folder) {
    std::vector<fs::path> paths;
    for (int output : outputs) {
        const std::string& name = graph.outputs[static_cast<size_t>(output)].name;
        if (!is_plain_name(name)) throw Error(ErrorKind::BadData, "the output '" + name + "' cannot name a file");
        paths.push_back(folder / (name + ".npy"));
    }
    return paths;
}

OutputFiles::OutputFiles(const Graph& graph, std::vector<int> outputs, const fs::path& folder, int64_t num_samples,
                         bool overwrite)
    : outputs_(std::move(outputs)), paths_(output_paths(graph, outputs_, folder)), num_samples_(num_samples) {
    for (const GraphOutput& output : graph.outputs) names_.push_back(output.name);
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
        throw Error(ErrorKind::Output, "cannot make the folder " + folder.string() + ": " + error.message());
    }
    for (const fs::path& path : paths_) {
        if (overwrite || !fs::exists(path)) continue;
        throw Error(ErrorKind::Output,
                    path.string() + " is there already; name another folder, or replace it with --overwrite");
    }
}

void OutputFiles::take(const std::vector<at::Tensor>& outputs, int64_t num_samples) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
        const auto index = static_cast<size_t>(outputs_[i]);
        const at::Tensor tensor = as_written(outputs[index]);
        const bool is_first = first_.size() == i;
        if (!has_rows(tensor, num_samples) || !(is_first || is_alike(tensor, first_[i]))) {
            throw Error(ErrorKind::BadData,
                        "the output '" + names_[index] + "' has the shape " + shape_text(tensor.sizes().vec()) +
                            " for a microbatch of " + std::to_string(num_samples) +
                            " samples, which is no row for each sample like before; was the model traced with its "
                            "batch size? Try --drop-last, or script it");
        }
        if (is_first) {
            std::vector<int64_t> shape = tensor.sizes().vec();
            shape[0] = num_samples_;
            first_.push_back(tensor);
            writers_.push_back(std::make_unique<NpyWriter>(paths_[i], from_torch(tensor.scalar_type()), shape));
        }
        writers_[i]->write({static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()});
    }
}

void OutputFiles::publish() {
    for (const auto& writer : writers_) writer->finish();
    for (const auto& writer : writers_) writer->remove_old();
    for (const auto& writer : writers_) writer->publish();
}

}  // namespace vpp
