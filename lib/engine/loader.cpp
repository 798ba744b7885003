#include "engine/loader.hpp"

#include <ATen/ops/empty.h>

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

at::Tensor Loader::load(int input, std::span<const Draw> draws) const {
    const int index = field_of_input_.at(static_cast<size_t>(input));
    const Field& field = dataset_.fields().fields[static_cast<size_t>(index)];
    std::vector<int64_t> shape{static_cast<int64_t>(draws.size())};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(to_torch(field.dtype)));
    read_samples(dataset_, index, draws, {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()});
    return tensor;
}

}  // namespace vpp
