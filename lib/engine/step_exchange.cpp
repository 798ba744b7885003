#include "engine/step_exchange.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "comm/collective.hpp"
#include "graph/torch_dtype.hpp"
#include "optim/norm.hpp"

namespace vpp {

namespace {

void put_scalar(ByteWriter& writer, const at::Tensor& scalar) {
    writer.put(from_torch(scalar.scalar_type()));
    const at::Tensor here = scalar.cpu();
    writer.append({static_cast<const std::byte*>(here.const_data_ptr()), static_cast<size_t>(here.itemsize())});
}

at::Tensor get_scalar(ByteReader& reader) {
    const auto dtype = reader.get<DType>();
    at::Tensor scalar = at::empty({}, at::TensorOptions().dtype(to_torch(dtype)));
    const auto bytes = reader.take(size_of(dtype));
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(scalar.mutable_data_ptr()));
    return scalar;
}

template <typename T>
void put_list(ByteWriter& writer, const std::vector<T>& values) {
    writer.put(static_cast<uint64_t>(values.size()));
    for (const T& value : values) writer.put(value);
}

template <typename T>
std::vector<T> get_list(ByteReader& reader) {
    std::vector<T> values;
    for (auto count = reader.get<uint64_t>(); count > 0; --count) values.push_back(reader.get<T>());
    return values;
}

/// Sums of the ranks' times, and then their mean.
class StageMeans {
  public:
    void add(const std::vector<StepShare::Stage>& stages) {
        for (const auto& [stage, times] : stages) {
            const auto index = static_cast<size_t>(stage);
            sums_.resize(std::max(sums_.size(), index + 1));
            counts_.resize(sums_.size());
            sums_[index] += times;
            ++counts_[index];
        }
    }
    std::vector<StageTimes> take() {
        for (size_t i = 0; i < sums_.size(); ++i) sums_[i] *= 1.0 / std::max(1, counts_[i]);
        return std::move(sums_);
    }

  private:
    std::vector<StageTimes> sums_;
    std::vector<int> counts_;
};

/// On the CPU, fetched at once: in a stack of several dtypes each value is in one that holds it.
std::vector<StepShare::Norm> fetch(std::vector<StepShare::Norm> norms) {
    if (norms.empty() || norms.front().value.is_cpu()) return norms;
    std::vector<at::Tensor> values;
    for (const StepShare::Norm& norm : norms) values.push_back(norm.value);
    const at::Tensor fetched = at::stack(values).cpu();
    for (size_t i = 0; i < norms.size(); ++i) {
        norms[i].value = fetched[static_cast<int64_t>(i)].to(norms[i].value.scalar_type());
    }
    return norms;
}

void join(StepFigures& all, const StepFigures& one) {
    const auto most = [&](auto figure) { all.*figure = std::max(all.*figure, one.*figure); };
    const auto sum = [&](auto figure) { all.*figure += one.*figure; };
    const auto any = [&](bool StepFigures::*figure) { all.*figure = all.*figure || one.*figure; };
    most(&StepFigures::targets);
    most(&StepFigures::actions_seconds);
    most(&StepFigures::reduce_seconds);
    most(&StepFigures::memory_bytes);
    most(&StepFigures::parked_bytes);
    most(&StepFigures::activation_bytes);
    sum(&StepFigures::memory_flushes);
    sum(&StepFigures::recorded_segments);
    sum(&StepFigures::by_op_segments);
    any(&StepFigures::nearly_full);
    any(&StepFigures::takes_memory);
    any(&StepFigures::stop);
    any(&StepFigures::save);
    any(&StepFigures::overflow);
}

Bytes share_bytes(const StepShare& share) {
    ByteWriter writer;
    writer.put<StepFigures>(share);
    writer.put(static_cast<uint64_t>(share.norms.size()));
    for (const StepShare::Norm& norm : fetch(share.norms)) {
        writer.put(norm.parameter);
        put_scalar(writer, norm.value);
    }
    writer.put(share.first_loss);
    put_list(writer, share.losses);
    put_list(writer, share.stages);
    writer.put(share.wait_seconds);
    writer.put(share.run_seconds);
    return writer.take();
}

/// Rank 0's part: all shares together, norms by parameter.
StepTotals add_up(const std::vector<Bytes>& shares, at::Device device) {
    StepTotals totals;
    std::map<int, at::Tensor> norms;
    StageMeans stages;
    for (const Bytes& bytes : shares) {
        ByteReader reader(bytes);
        join(totals, reader.get<StepFigures>());
        for (auto count = reader.get<uint64_t>(); count > 0; --count) {
            const auto parameter = reader.get<int>();
            check(norms.emplace(parameter, get_scalar(reader)).second, "a parameter's gradient has one owner");
        }
        const auto first_loss = static_cast<size_t>(reader.get<int>());
        const auto losses = get_list<double>(reader);
        totals.losses.resize(std::max(totals.losses.size(), losses.empty() ? 0 : first_loss + losses.size()));
        std::copy(losses.begin(), losses.end(),
                  totals.losses.begin() + static_cast<std::ptrdiff_t>(losses.empty() ? 0 : first_loss));
        stages.add(get_list<StepShare::Stage>(reader));
        totals.wait_seconds.push_back(reader.get<double>());
        const auto run_seconds = reader.get<double>();
        totals.busy_seconds.push_back(run_seconds - totals.wait_seconds.back());
        totals.slowest_seconds = std::max(totals.slowest_seconds, run_seconds);
    }
    totals.stages = stages.take();
    std::vector<at::Tensor> ordered;
    for (const auto& [parameter, norm] : norms) ordered.push_back(norm);
    if (!ordered.empty()) totals.grad_norm = total_norm(ordered, device);
    return totals;
}

Bytes totals_bytes(const StepTotals& totals) {
    ByteWriter writer;
    writer.put<StepFigures>(totals);
    writer.put(totals.grad_norm.defined());
    if (totals.grad_norm.defined()) put_scalar(writer, totals.grad_norm);
    put_list(writer, totals.losses);
    put_list(writer, totals.wait_seconds);
    put_list(writer, totals.busy_seconds);
    put_list(writer, totals.stages);
    writer.put(totals.slowest_seconds);
    return writer.take();
}

}  // namespace

StepTotals exchange_step(Transport& transport, const StepShare& share, at::Device device) {
    const std::vector<Bytes> shares = gather(transport, share_bytes(share));
    const Bytes bytes = broadcast(transport, transport.rank() == 0 ? totals_bytes(add_up(shares, device)) : Bytes{});
    ByteReader reader(bytes);
    StepTotals totals;
    static_cast<StepFigures&>(totals) = reader.get<StepFigures>();
    if (reader.get<bool>()) totals.grad_norm = get_scalar(reader).to(device);
    totals.losses = get_list<double>(reader);
    totals.wait_seconds = get_list<double>(reader);
    totals.busy_seconds = get_list<double>(reader);
    totals.stages = get_list<StageTimes>(reader);
    totals.slowest_seconds = reader.get<double>();
    return totals;
}

}  // namespace vpp
