// Keyed randomness. The op vpp::reseed runs right before each random op; what it sets depends on the microbatch's key,
// the op's call site in the whole graph, and how often that site has run for this microbatch: on nothing else, so no
// cut, schedule or recompute changes a mask.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include <algorithm>

#include "base/random.hpp"
#include "graph/jit_graph.hpp"
#include "graph/seed_listener.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

namespace {

void set_seed(at::Generator generator, uint64_t seed) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(seed);
}

thread_local SeedListener* listener = nullptr;

/// A CUDA generator's seed begins its Philox sequence anew, at offset 0.
void reseed(const at::Tensor& counts, int64_t key, int64_t site, at::Device device) {
    int64_t& count = counts.data_ptr<int64_t>()[site];
    if (listener != nullptr) return listener->on_random_op(site, count++);
    const uint64_t seed = site_seed(static_cast<uint64_t>(key), site, count++);
    set_seed(at::detail::getDefaultCPUGenerator(), seed);
    if (!device.is_cpu() && !device.is_meta()) set_seed(at::globalContext().defaultGenerator(device), seed);
}

TORCH_LIBRARY_FRAGMENT(vpp, library) {
    // CONSERVATIVE: it has side effects, so no pass may remove or move it.
    library.def(torch::schema("vpp::reseed(Tensor counts, int key, int site, Device device) -> ()",
                              c10::AliasAnalysisKind::CONSERVATIVE),
                reseed);
}

bool takes_generator(const c10::FunctionSchema& schema) {
    return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
        const c10::TypePtr& type = argument.type();
        const auto optional = type->cast<c10::OptionalType>();
        return (optional ? optional->getElementType() : type)->kind() == c10::TypeKind::GeneratorType;
    });
}

/// The JIT's own ops (aten::_no_grad_normal_, of torch.nn.init) have no tags.
bool is_random(const Node* node) {
    const auto* schema = node->maybeSchema();
    if (!schema) return false;
    if (takes_generator(*schema)) return true;
    const auto handle = c10::Dispatcher::singleton().findOp(schema->operator_name());
    return handle && handle->hasTag(at::Tag::nondeterministic_seeded);
}

/// Puts a reseed before every random node inside a block and numbers the sites.
class Reseeder {
  public:
    explicit Reseeder(JitGraph& jit) : jit_(jit) {}

    /// Whether something inside the node's blocks draws random numbers.
    bool visit_blocks(Node* node) {
        bool found = false;
        for (Block* block : node->blocks()) {
            for (auto it = block->nodes().begin(); it != block->nodes().end();) {
                Node* inner = *it++;
                found = visit_blocks(inner) || found;
                if (!is_random(inner)) continue;
                const torch::jit::WithInsertPoint before(inner);
                jit_.graph->insertNode(make_reseed(*jit_.graph, jit_.counts, jit_.key, jit_.num_sites++));
                found = true;
            }
        }
        return found;
    }

  private:
    JitGraph& jit_;
};

}  // namespace

ListeningToSeeds::ListeningToSeeds(SeedListener& told) {
    listener = &told;
}

ListeningToSeeds::~ListeningToSeeds() {
    listener = nullptr;
}

Node* make_reseed(torch::jit::Graph& graph, Value* counts, Value* key, int64_t site) {
    Node* call = graph.create(c10::Symbol::fromQualString("vpp::reseed"), 0);
    call->addInput(counts);
    call->addInput(key);
    call->addInput(graph.insertConstant(site));
    call->addInput(graph.insertConstant(at::Device(at::kCPU)));
    return call;
}

void insert_reseeds(JitGraph& jit) {
    jit.counts = jit.graph->addInput("vpp_counts");
    jit.counts->setType(c10::TensorType::get());
    jit.key = jit.graph->addInput("vpp_key");
    jit.key->setType(c10::IntType::get());
    Reseeder reseeder(jit);
    std::vector<JitOp*> as_written;
    for (JitOp& op : jit.ops) as_written.push_back(&op);
    std::ranges::sort(as_written, {}, [](const JitOp* op) { return op->written_at; });
    for (JitOp* written : as_written) {
        JitOp& op = *written;
        op.random = reseeder.visit_blocks(op.node);
        if (!is_random(op.node)) continue;
        op.random = true;
        op.random_site = jit.num_sites++;
    }
}

}  // namespace vpp
