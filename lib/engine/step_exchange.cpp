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

Bytes share_bytes(const StepShare& share) {
    ByteWriter writer;
    writer.put(static_cast<uint64_t>(share.norms.size()));
    for (const StepShare::Norm& norm : fetch(share.norms)) {
        writer.put(norm.parameter);
        put_scalar(writer, norm.value);
    }
    writer.put(share.first_loss);
    put_list(writer, share.losses);
    writer.put(share.targets);
    put_list(writer, share.stages);
    writer.put(share.actions_seconds);
    writer.put(share.wait_seconds);
    writer.put(share.run_seconds);
    writer.put(share.reduce_seconds);
    writer.put(share.memory_bytes);
    writer.put(share.parked_bytes);
    writer.put(share.activation_bytes);
    writer.put(share.memory_flushes);
    writer.put(share.nearly_full);
    writer.put(share.takes_memory);
    writer.put(share.recorded_segments);
    writer.put(share.by_op_segments);
    writer.put(share.stop);
    writer.put(share.save);
    writer.put(share.overflow);
    return writer.take();
}

/// Rank 0's part: all shares together, norms by parameter.
StepTotals add_up(const std::vector<Bytes>& shares, at::Device device) {
    StepTotals totals;
    std::map<int, at::Tensor> norms;
    StageMeans stages;
    for (const Bytes& bytes : shares) {
        ByteReader reader(bytes);
        for (auto count = reader.get<uint64_t>(); count > 0; --count) {
            const auto parameter = reader.get<int>();
            check(norms.emplace(parameter, get_scalar(reader)).second, "a parameter's gradient has one owner");
        }
        const auto first_loss = static_cast<size_t>(reader.get<int>());
        const auto losses = get_list<double>(reader);
        totals.losses.resize(std::max(totals.losses.size(), losses.empty() ? 0 : first_loss + losses.size()));
        std::copy(losses.begin(), losses.end(),
                  totals.losses.begin() + static_cast<std::ptrdiff_t>(losses.empty() ? 0 : first_loss));
        totals.targets = std::max(totals.targets, reader.get<int64_t>());
        stages.add(get_list<StepShare::Stage>(reader));
        totals.actions_seconds = std::max(totals.actions_seconds, reader.get<double>());
        totals.wait_seconds.push_back(reader.get<double>());
        const auto run_seconds = reader.get<double>();
        totals.busy_seconds.push_back(run_seconds - totals.wait_seconds.back());
        totals.slowest_seconds = std::max(totals.slowest_seconds, run_seconds);
        totals.reduce_seconds = std::max(totals.reduce_seconds, reader.get<double>());
        totals.memory_bytes = std::max(totals.memory_bytes, reader.get<int64_t>());
        totals.parked_bytes = std::max(totals.parked_bytes, reader.get<int64_t>());
        totals.activation_bytes = std::max(totals.activation_bytes, reader.get<int64_t>());
        totals.memory_flushes += reader.get<int64_t>();
        totals.nearly_full = reader.get<bool>() || totals.nearly_full;
        totals.takes_memory = reader.get<bool>() || totals.takes_memory;
        totals.recorded_segments += reader.get<int64_t>();
        totals.by_op_segments += reader.get<int64_t>();
        totals.stop = reader.get<bool>() || totals.stop;
        totals.save = reader.get<bool>() || totals.save;
        totals.overflow = reader.get<bool>() || totals.overflow;
    }
    totals.stages = stages.take();
    std::vector<at::Tensor> ordered;
    for (const auto& [parameter, norm] : norms) ordered.push_back(norm);
    if (!ordered.empty()) totals.grad_norm = total_norm(ordered, device);
    return totals;
}

Bytes totals_bytes(const StepTotals& totals) {
    ByteWriter writer;
    writer.put(totals.grad_norm.defined());
    if (totals.grad_norm.defined()) put_scalar(writer, totals.grad_norm);
    put_list(writer, totals.losses);
    writer.put(totals.targets);
    put_list(writer, totals.wait_seconds);
    put_list(writer, totals.busy_seconds);
    put_list(writer, totals.stages);
    writer.put(totals.actions_seconds);
    writer.put(totals.slowest_seconds);
    writer.put(totals.reduce_seconds);
    writer.put(totals.memory_bytes);
    writer.put(totals.parked_bytes);
    writer.put(totals.activation_bytes);
    writer.put(totals.memory_flushes);
    writer.put(totals.nearly_full);
    writer.put(totals.takes_memory);
    writer.put(totals.recorded_segments);
    writer.put(totals.by_op_segments);
    writer.put(totals.stop);
    writer.put(totals.save);
    writer.put(totals.overflow);
    return writer.take();
}

}  // namespace

StepTotals exchange_step(Transport& transport, const StepShare& share, at::Device device) {
    const std::vector<Bytes> shares = gather(transport, share_bytes(share));
    const Bytes bytes = broadcast(transport, transport.rank() == 0 ? totals_bytes(add_up(shares, device)) : Bytes{});
    ByteReader reader(bytes);
    StepTotals totals;
    if (reader.get<bool>()) totals.grad_norm = get_scalar(reader).to(device);
    totals.losses = get_list<double>(reader);
    totals.targets = reader.get<int64_t>();
    totals.wait_seconds = get_list<double>(reader);
    totals.busy_seconds = get_list<double>(reader);
    totals.stages = get_list<StageTimes>(reader);
    totals.actions_seconds = reader.get<double>();
    totals.slowest_seconds = reader.get<double>();
    totals.reduce_seconds = reader.get<double>();
    totals.memory_bytes = reader.get<int64_t>();
    totals.parked_bytes = reader.get<int64_t>();
    totals.activation_bytes = reader.get<int64_t>();
    totals.memory_flushes = reader.get<int64_t>();
    totals.nearly_full = reader.get<bool>();
    totals.takes_memory = reader.get<bool>();
    totals.recorded_segments = reader.get<int64_t>();
    totals.by_op_segments = reader.get<int64_t>();
    totals.stop = reader.get<bool>();
    totals.save = reader.get<bool>();
    totals.overflow = reader.get<bool>();
    return totals;
}

}  // namespace vpp
