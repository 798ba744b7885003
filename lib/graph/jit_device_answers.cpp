// What a model asks of devices. place_graph (jit_device.hpp) puts all tensors on one, so that the answers are known; a
// few ops leave theirs on the host.
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/jit_alias.hpp"
#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace aten = torch::jit::aten;
namespace prim = torch::jit::prim;

namespace {

/// Where a tensor, or what holds tensors, lies.
enum class Place { Target, Host, Unknown };

struct IsQuestion {
    std::string_view kind;
    at::DeviceType asked;
};

constexpr std::array<IsQuestion, 10> kIsQuestions{{{"prim::is_cpu", at::kCPU},
                                                   {"prim::is_cuda", at::kCUDA},
                                                   {"prim::is_meta", at::kMeta},
                                                   {"prim::is_xpu", at::kXPU},
                                                   {"prim::is_xla", at::kXLA},
                                                   {"prim::is_mps", at::kMPS},
                                                   {"prim::is_ipu", at::kIPU},
                                                   {"prim::is_vulkan", at::kVulkan},
                                                   {"prim::is_mtia", at::kMTIA},
                                                   {"prim::is_maia", at::kMAIA}}};

struct HostOutput {
    const char* kind;
    size_t output;
};

/// What lies on the host wherever the op computes: lengths of sequences, numbers.
constexpr std::array<HostOutput, 3> kHostOutputs{
    {{"aten::_pack_padded_sequence", 1}, {"aten::_pad_packed_sequence", 1}, {"prim::NumToTensor", 0}}};

bool is_device(const Value* value) {
    return value->type()->kind() == c10::TypeKind::DeviceObjType;
}

const IsQuestion* find_is_question(const Node* node) {
    const auto found = std::ranges::find(kIsQuestions, node->kind().toQualString(), &IsQuestion::kind);
    return found == kIsQuestions.end() ? nullptr : found;
}

bool compares_devices(const Node* node) {
    return (node->kind() == aten::eq || node->kind() == aten::ne) && is_device(node->input(0));
}

bool asks_type(const Node* node) {
    return is_op(node, "prim::type") && is_device(node->input(0));
}

/// The number of a card is that of a rank; the CPU has none.
bool asks_number(const Node* node) {
    const bool of_device = is_op(node, "aten::str") || is_op(node, "prim::index");
    return (of_device && is_device(node->input(0))) || is_op(node, "aten::get_device");
}

bool asks_for_device(const Node* node) {
    return find_is_question(node) || compares_devices(node) || asks_type(node) || asks_number(node);
}

c10::IValue number_of_cpu(const Node* question) {
    if (is_op(question, "aten::str")) return "cpu";
    return is_op(question, "aten::get_device") ? c10::IValue(-1) : c10::IValue();
}

bool gives_same_tensor(const Node* node) {
    return node->kind() == prim::unchecked_cast || node->kind() == prim::unchecked_unwrap_optional ||
           is_op(node, "aten::_unwrap_optional");
}

class Answers {
  public:
    explicit Answers(at::DeviceType target) : target_(target) {}

    void find(Block* block) {
        for (Node* node : block->nodes()) {
            for (Block* inner : node->blocks()) {
                for (const Value* given : inner->inputs()) places_[given] = Place::Unknown;
                find(inner);
            }
            if (asks_for_device(node)) {
                has_questions_ = true;
                if (auto answer = answer_to(node)) found_.emplace_back(node, *std::move(answer));
            }
            for (size_t i = 0; i < node->outputs().size(); ++i) places_[node->output(i)] = place_of_output(node, i);
        }
    }

    bool has_questions() const { return has_questions_; }

    void write_down() {
        for (const auto& [node, answer] : found_) {
            const torch::jit::WithInsertPoint here(node);
            node->output()->replaceAllUsesWith(node->owningGraph()->insertConstant(answer));
            node->destroy();
        }
    }

  private:
    std::optional<c10::IValue> answer_to(const Node* node) const {
        if (const IsQuestion* question = find_is_question(node)) {
            const auto type = type_of_tensor(node->input(0));
            return type ? std::optional<c10::IValue>(*type == question->asked) : std::nullopt;
        }
        const auto type = is_device(node->input(0)) ? type_of_device(node->input(0)) : type_of_tensor(node->input(0));
        if (!type) return std::nullopt;
        if (asks_number(node)) return *type == at::kCPU ? std::optional(number_of_cpu(node)) : std::nullopt;
        if (asks_type(node)) return c10::DeviceTypeName(*type, /*lower_case=*/true);
        const auto other = type_of_device(node->input(1));
        if (!other) return std::nullopt;
        return (*type == *other) == (node->kind() == aten::eq);
    }

    std::optional<at::DeviceType> type_of_tensor(const Value* tensor) const {
        const Place place = place_of(tensor);
        if (target_ == at::kCPU || place == Place::Host) return at::kCPU;
        return place == Place::Target ? std::optional(target_) : std::nullopt;
    }

    std::optional<at::DeviceType> type_of_device(const Value* device) const {
        const auto constant = torch::jit::toIValue(device);
        if (constant && constant->isDevice()) return constant->toDevice().type();
        return device->node()->kind() == prim::device ? type_of_tensor(device->node()->input(0)) : std::nullopt;
    }

    Place place_of(const Value* value) const {
        const auto known = places_.find(value);
        return known == places_.end() ? Place::Target : known->second;
    }

    Place place_of_output(const Node* node, size_t output) const {
        const auto is_it = [&](const HostOutput& host) { return is_op(node, host.kind) && host.output == output; };
        if (std::ranges::any_of(kHostOutputs, is_it)) return Place::Host;
        if (gives_same_tensor(node)) return place_of(node->input(0));
        if (node->kind() == prim::If) {
            const Place place = place_of(node->blocks()[0]->outputs()[output]);
            return place == place_of(node->blocks()[1]->outputs()[output]) ? place : Place::Unknown;
        }
        return node->blocks().empty() && takes_target(node) ? Place::Target : Place::Unknown;
    }

    /// An op that takes a tensor of the target gives some of it, though another is a number of the host. What is put
    /// into a tuple or list stays where it is, and comes out of it so.
    bool takes_target(const Node* node) const {
        const bool only_holds = node->kind().is_prim();
        bool has_tensor = false, has_target = false, all_are = true;
        for (const Value* input : node->inputs()) {
            if (!holds_tensors(*input->type())) continue;
            const bool is_target = place_of(input) == Place::Target;
            if (!is_tensor(*input->type()) || only_holds) {
                all_are = all_are && is_target;
            } else {
                has_tensor = true;
                has_target = has_target || is_target;
            }
        }
        return all_are && (has_target || !has_tensor);
    }

    at::DeviceType target_;
    std::unordered_map<const Value*, Place> places_;
    std::vector<std::pair<Node*, c10::IValue>> found_;
    bool has_questions_ = false;
};

}  // namespace

std::string answer_devices(JitGraph& jit, at::DeviceType target) {
    Answers answers(target);
    answers.find(jit.graph->block());
    if (!answers.has_questions()) return "";
    std::string before = jit.graph->toString(/*print_source_locations=*/false);
    answers.write_down();
    straighten(jit);
    return before;
}

}  // namespace vpp
