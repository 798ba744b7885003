#pragma once
// The judge of cut rules: pieces with memory of their own must give the bits of the whole, at every cut that is called
// legal.
#include <gtest/gtest.h>

#include <string>

#include "unit/graph/models.hpp"

namespace vpp::test {

inline const TorchScriptOptions kRuleOptions = options_for({floats("x", {4})});

struct Verdict {
    int legal = 0;
    int refused = 0;
    int refused_and_different = 0;  ///< other bits, or the run fails
};

/// Everything that lives across a legal cut was made before it, containers included.
inline void expect_live_made_before(const Graph& graph, int cut) {
    for (const GraphValue& value : graph.values) {
        if (value.producer < 0 || value.producer >= cut || value.uses.empty() || value.uses.back() < cut) continue;
        for (int tensor : value.tensors) {
            EXPECT_LT(graph.tensors[static_cast<size_t>(tensor)].producer, cut) << value.name << " at cut " << cut;
        }
    }
}

/// The loss with one cut, or why there is none. Code with an Enter and no Exit would end the process: not run.
inline std::string bits_of_cut(LoadedModel& model, int cut, const Inputs& inputs) {
    if (model.graph.cuts[static_cast<size_t>(cut)].reason.find("own class") != std::string::npos) return "not run";
    try {
        return bits_of(run_in_pieces(model, {cut}, inputs));
    } catch (const std::exception& error) {
        return error.what();
    }
}

inline Verdict verdict_of(LoadedModel& model) {
    const Inputs inputs{{"x", values({2, 4})}};
    const std::string whole = bits_of(run_in_pieces(model, {}, inputs));
    Verdict verdict;
    for (int cut = 1; cut < model.graph.num_ops(); ++cut) {
        const GraphCut& entry = model.graph.cuts[static_cast<size_t>(cut)];
        EXPECT_EQ(entry.legal, entry.reason.empty());
        const std::string bits = bits_of_cut(model, cut, inputs);
        if (entry.legal) {
            EXPECT_EQ(bits, whole) << "cut " << cut;
            expect_live_made_before(model.graph, cut);
            ++verdict.legal;
        } else {
            ++verdict.refused;
            verdict.refused_and_different += bits != whole;
        }
    }
    return verdict;
}

inline LoadedModel load_code(const std::string& code) {
    return load({"Model", code}, kRuleOptions);
}

inline std::string reason_at(const Graph& graph, int cut) {
    return graph.cuts[static_cast<size_t>(cut)].reason;
}

}  // namespace vpp::test
