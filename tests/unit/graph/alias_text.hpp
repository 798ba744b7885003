#pragma once
// Alias facts of graphs written as text, asked by name.
#include <string>
#include <vector>

#include "graph/jit_alias.hpp"
#include "ir_text.hpp"

namespace vpp::test {

class Facts {
  public:
    explicit Facts(const std::string& text) : parsed_(parse_graph(text)), facts_(parsed_.jit) {}
    bool written(const std::string& name) const { return facts_.has_writers(parsed_.values.at(name)); }
    bool shared(const std::string& a, const std::string& b) const {
        return facts_.may_share(parsed_.values.at(a), parsed_.values.at(b));
    }
    bool writes(size_t op, const std::string& name) const {
        return facts_.may_write(parsed_.jit.ops.at(op).node, parsed_.values.at(name));
    }
    bool in_container(const std::string& name) const { return facts_.may_be_in_container(parsed_.values.at(name)); }
    void learn(const std::vector<std::vector<std::string>>& groups) {
        std::vector<std::vector<const torch::jit::Value*>> values;
        for (const std::vector<std::string>& group : groups) {
            values.emplace_back();
            for (const std::string& name : group) values.back().push_back(parsed_.values.at(name));
        }
        facts_.learn(values);
    }
    /// What may_write_at_all says of every op: "00100".
    std::string writing_ops() const {
        std::string text;
        for (const JitOp& op : parsed_.jit.ops) text += facts_.may_write_at_all(op.node) ? '1' : '0';
        return text;
    }

  private:
    ParsedGraph parsed_;
    AliasFacts facts_;
};

}  // namespace vpp::test
