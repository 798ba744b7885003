#include "graph/forward_memory.hpp"

#include <ATen/core/grad_mode.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "graph/ivalue_tensors.hpp"
#include "graph/meta_memory.hpp"

namespace vpp {

using torch::jit::Value;

namespace {

/// By op, the values made by ops that no later one takes.
std::vector<std::vector<const Value*>> last_uses(const JitGraph& jit) {
    std::unordered_map<const Value*, size_t> last;
    for (size_t i = 0; i < jit.ops.size(); ++i) {
        for (const Value* used : values_used(jit.ops[i].node)) {
            if (last.contains(used)) last[used] = i;
        }
        for (const Value* made : jit.ops[i].node->outputs()) last[made] = i;
    }
    last.erase(jit.loss);
    std::vector<std::vector<const Value*>> values(jit.ops.size());
    for (const auto& [value, op] : last) values[op].push_back(value);
    return values;
}

/// Of outputs, each memory once, where the op that runs has made it.
int64_t new_output_bytes(const JitGraph& jit, OpRange range, const TrialValues& values, MetaMemory& memory) {
    std::unordered_set<const c10::StorageImpl*> known;
    int64_t bytes = 0;
    for (int i = range.begin; i < range.end; ++i) {
        for (const Value* made : jit.ops[static_cast<size_t>(i)].node->outputs()) {
            for (const at::Tensor& tensor : tensors_in(values.at(made))) {
                if (!tensor.has_storage()) continue;
                const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
                if (known.insert(storage).second) bytes += memory.note_size(*storage);
            }
        }
    }
    return bytes;
}

}  // namespace

std::vector<OpMemory> forward_memory(const JitGraph& jit, TrialValues values, const TrialPlaces& places) {
    const std::vector<std::vector<const Value*>> last = last_uses(jit);
    const auto memory = std::make_shared<MetaMemory>(jit.ops.size());
    const c10::DebugInfoGuard watching(c10::DebugInfoKind::PROFILER_STATE, memory);
    const at::AutoGradMode grad(jit.modes.grad);
    OpTrial trial(jit, places);
    std::vector<OpMemory> ops(jit.ops.size());
    for (size_t i = 0; i < ops.size();) {
        memory->begin_op(i);
        const OpRange range = trial.run(static_cast<int>(i), values);
        const int64_t output_bytes = new_output_bytes(jit, range, values, *memory);
        ops[i].inner_bytes = memory->alive_bytes_of(i) - output_bytes;
        ops[i].passing_bytes = memory->alive_bytes();
        for (; i < static_cast<size_t>(range.end); ++i) {
            for (const Value* value : last[i]) values.erase(value);
        }
    }
    int64_t kept_bytes = 0;
    for (size_t i = 0; i < ops.size(); ++i) {
        ops[i].kept_bytes = memory->alive_bytes_of(i);
        kept_bytes += ops[i].kept_bytes;
        ops[i].passing_bytes = std::max<int64_t>(0, ops[i].passing_bytes - kept_bytes);
    }
    return ops;
}

}  // namespace vpp
