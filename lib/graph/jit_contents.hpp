#pragma once
// What a list or dict holds at a place of the code, and what ops that change it make of that.
#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vpp {

constexpr size_t kMostElements = 256;  ///< of joined lists: those that double again and again end there

/// The elements of a list that stays as it was written down, if nothing changes it by another name.
std::optional<std::vector<torch::jit::Value*>> written_elements(torch::jit::Value* list);

/// What a key is, where that is a word or a whole number that is known; a dict's keys are of one type.
std::optional<std::string> word_of(const torch::jit::Value* key);

/// Whether the op takes an element out of its first input and gives it: `outs.pop()`.
bool is_pop(const torch::jit::Node* node);

class ContainerContents {
  public:
    /// Of the list or dict that the op makes. With `others_change` something changes lists by names that are not known.
    ContainerContents(torch::jit::Node* maker, bool others_change);

    const std::vector<torch::jit::Value*>& keys() const { return keys_; }  ///< of a dict
    const std::vector<torch::jit::Value*>& values() const { return values_; }

    /// Keys that are no known words, or are there twice.
    bool has_unknown_keys() const;

    /// Where the element of an index or key is, if that is known and there is one.
    std::optional<size_t> place_of(const torch::jit::Value* key) const;

    /// Whether the op, on this container, is a change of which it is known what it does where its place is there.
    bool understands(torch::jit::Node* change) const;

    /// The element that the change takes out, or what it gives in the place of one that is not there.
    torch::jit::Value* taken_by(torch::jit::Node* change) const;

    /// Does the change. False, and nothing is done, where there is no such place, or no room.
    /// Requires: understands(change).
    bool follow(torch::jit::Node* change);

  private:
    std::optional<size_t> place_of_word(const torch::jit::Value* key) const;
    std::optional<std::vector<torch::jit::Value*>> added_by(torch::jit::Node* change) const;
    std::optional<std::vector<std::pair<torch::jit::Value*, torch::jit::Value*>>> entries_of(
        torch::jit::Node* change) const;
    bool add(const std::vector<torch::jit::Value*>& added);
    bool set(torch::jit::Value* key, torch::jit::Value* value);
    bool take_out(const torch::jit::Node* change);
    void insert(torch::jit::Node* change);

    bool is_list_, others_change_;
    std::vector<torch::jit::Value*> keys_, values_;
};

}  // namespace vpp
