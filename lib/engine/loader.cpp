#include "engine/loader.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/error.hpp"
#include "data/batch.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

Loader::Loader(const Dataset& dataset, const Graph& graph) : dataset_(dataset) {
    for (const GraphInput& input : graph.inputs) {
        const int field = dataset.fields().find(input.name);
        if (field < 0 && input.value >= 0) {
            throw Error(ErrorKind::BadData, "the model's input '" + input.name + "' is no field of the data");
        }
        field_of_input_.push_back(field);
    }
}

const Field& Loader::field_of(int input) const {
    return dataset_.fields().fields[static_cast<size_t>(field_of_input_.at(static_cast<size_t>(input)))];
}

at::Tensor Loader::load(int input, std::span<const Draw> draws) const {
    return to_tensor(input, read(input, draws));
}

std::vector<std::byte> Loader::read(int input, std::span<const Draw> draws) const {
    std::vector<std::byte> bytes(draws.size() * static_cast<size_t>(field_of(input).bytes_per_sample()));
    read_samples(dataset_, field_of_input_.at(static_cast<size_t>(input)), draws, bytes);
    return bytes;
}

at::Tensor Loader::to_tensor(int input, const std::vector<std::byte>& bytes) const {
    const Field& field = field_of(input);
    const int64_t samples = static_cast<int64_t>(bytes.size()) / field.bytes_per_sample();
    at::Tensor tensor = at::empty(field.batch_shape(samples), at::TensorOptions().dtype(to_torch(field.dtype)));
    check(tensor.nbytes() == bytes.size(), "the bytes are whole samples");
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(tensor.mutable_data_ptr()));
    return tensor;
}

}  // namespace vpp
