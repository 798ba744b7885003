#include "graph/gradient_watch.hpp"

#include <algorithm>

#include "graph/ivalue_tensors.hpp"

namespace vpp {

namespace {

const c10::StorageImpl* memory_of(const at::Tensor& tensor) {
    return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace

void GradientWatch::add(const c10::IValue& value) {
    for (at::Tensor& tensor : tensors_in(value)) {
        std::vector<Watched>& sharing = sharing_[memory_of(tensor)];
        const auto is_same = [&](const Watched& watched) { return watched.tensor.is_same(tensor); };
        if (std::ranges::any_of(sharing, is_same)) continue;
        const bool requires_grad = tensor.requires_grad();
        sharing.push_back({std::move(tensor), requires_grad});
    }
}

void GradientWatch::look_again(const c10::IValue& value, int op) {
    for (const at::Tensor& written : tensors_in(value)) {
        for (Watched& watched : sharing_[memory_of(written)]) {
            if (watched.tensor.requires_grad() == watched.requires_grad) continue;
            watched.requires_grad = !watched.requires_grad;
            flips_[watched.tensor.unsafeGetTensorImpl()].push_back(op);
        }
    }
}

}  // namespace vpp
