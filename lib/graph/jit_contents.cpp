#include "graph/jit_contents.hpp"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

#include "graph/jit_containers.hpp"
#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Node;
using torch::jit::Value;
namespace aten = torch::jit::aten;

namespace {

bool is_known_number(const Value* value) {
    const auto constant = torch::jit::toIValue(value);
    return constant && constant->isInt();
}

bool removes_element(const Node* node) {
    return is_pop(node) || is_op(node, "aten::Delete");
}

}  // namespace

std::optional<std::vector<Value*>> written_elements(Value* list) {
    Node* maker = list->node();
    if (maker->kind() != torch::jit::prim::ListConstruct || is_changed(list)) return std::nullopt;
    return std::vector<Value*>(maker->inputs().begin(), maker->inputs().end());
}

std::optional<std::string> word_of(const Value* key) {
    const auto constant = torch::jit::toIValue(key);
    if (constant && constant->isInt()) return std::to_string(constant->toInt());
    if (!constant || !constant->isString()) return std::nullopt;
    return constant->toStringRef();
}

bool is_pop(const Node* node) {
    return is_op(node, "aten::pop");
}

ContainerContents::ContainerContents(Node* maker, bool others_change)
    : is_list_(is_list(maker->output())), others_change_(others_change) {
    for (size_t i = 0; i < maker->inputs().size(); ++i) {
        const bool is_key = !is_list_ && i % 2 == 0;
        (is_key ? keys_ : values_).push_back(maker->input(i));
    }
}

bool ContainerContents::has_unknown_keys() const {
    for (size_t i = 0; i < keys_.size(); ++i) {
        if (place_of_word(keys_[i]) != i) return true;
    }
    return false;
}

std::optional<size_t> ContainerContents::place_of(const Value* key) const {
    return is_list_ ? place_in_list(key, values_.size()) : place_of_word(key);
}

std::optional<size_t> ContainerContents::place_of_word(const Value* key) const {
    const auto word = word_of(key);
    const auto found = std::ranges::find_if(keys_, [&](const Value* one) { return word && word_of(one) == word; });
    if (found == keys_.end()) return std::nullopt;
    return static_cast<size_t>(found - keys_.begin());
}

bool ContainerContents::understands(Node* change) const {
    if (added_by(change) || entries_of(change)) return true;
    if (is_op(change, "aten::reverse")) return true;
    if (is_op(change, "aten::insert")) return is_known_number(change->input(1));
    if (!is_op(change, "aten::_set_item") && !removes_element(change)) return false;
    return is_list_ ? is_known_number(change->input(1)) : word_of(change->input(1)).has_value();
}

Value* ContainerContents::taken_by(Node* change) const {
    const auto place = place_of(change->input(1));
    return place ? values_[*place] : change->input(2);
}

bool ContainerContents::follow(Node* change) {
    if (const auto added = added_by(change)) return add(*added);
    if (const auto entries = entries_of(change)) {
        for (const auto& [key, value] : *entries) set(key, value);
        return true;
    }
    if (removes_element(change)) return take_out(change);
    if (is_op(change, "aten::_set_item")) return set(change->input(1), change->input(2));
    if (is_op(change, "aten::reverse")) {
        std::ranges::reverse(values_);
    } else {
        insert(change);
    }
    return true;
}

/// What the op puts behind the elements of its list, where that is known.
std::optional<std::vector<Value*>> ContainerContents::added_by(Node* change) const {
    if (change->kind() == aten::append) return std::vector<Value*>{change->input(1)};
    const bool takes_list = is_list_ && (change->kind() == aten::add_ || is_op(change, "aten::extend"));
    if (!takes_list || others_change_) return std::nullopt;
    return written_elements(change->input(1));
}

/// What the op puts into its dict, where that is written down there and used for nothing else.
std::optional<std::vector<std::pair<Value*, Value*>>> ContainerContents::entries_of(Node* change) const {
    if (is_list_ || !is_op(change, "aten::update")) return std::nullopt;
    Value* other = change->input(1);
    if (other->node()->kind() != torch::jit::prim::DictConstruct || other->uses().size() != 1) return std::nullopt;
    std::vector<std::pair<Value*, Value*>> entries;
    const auto inputs = other->node()->inputs();
    for (size_t i = 0; i + 1 < inputs.size(); i += 2) {
        if (!word_of(inputs[i])) return std::nullopt;
        entries.emplace_back(inputs[i], inputs[i + 1]);
    }
    return entries;
}

bool ContainerContents::add(const std::vector<Value*>& added) {
    if (added.size() > 1 && values_.size() + added.size() > kMostElements) return false;
    values_.insert(values_.end(), added.begin(), added.end());
    return true;
}

bool ContainerContents::set(Value* key, Value* value) {
    const auto place = place_of(key);
    if (place) {
        values_[*place] = value;
        return true;
    }
    if (is_list_) return false;
    keys_.push_back(key);
    values_.push_back(value);
    return true;
}

bool ContainerContents::take_out(const Node* change) {
    const auto place = place_of(change->input(1));
    const bool has_default = change->inputs().size() > 2;
    if (!place) return has_default;
    values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(*place));
    if (!is_list_) keys_.erase(keys_.begin() + static_cast<std::ptrdiff_t>(*place));
    return true;
}

/// A place in front of the list is its begin, one behind it its end.
void ContainerContents::insert(Node* change) {
    const auto size = static_cast<int64_t>(values_.size());
    const int64_t place = torch::jit::toIValue(change->input(1))->toInt();
    const int64_t inside = std::clamp<int64_t>(place < 0 ? place + size : place, 0, size);
    values_.insert(values_.begin() + inside, change->input(2));
}

}  // namespace vpp
