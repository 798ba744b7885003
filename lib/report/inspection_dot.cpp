#include "report/inspection_dot.hpp"

#include "base/units.hpp"
#include "report/inspection_words.hpp"
#include "report/stage_colours.hpp"

namespace vpp {

namespace {

/// A string of the language; a line end in it stays one.
std::string quoted(const std::string& text) {
    std::string safe = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') safe += '\\';
        if (c == '\n')
            safe += "\\n";
        else
            safe += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
    return safe + '"';
}

std::string block_label(const Inspection& page, const InspectedBlock& block) {
    const InspectedModule& module = page.modules[static_cast<size_t>(block.module)];
    std::string text = row_name(module);
    if (!module.class_name.empty()) text += '\n' + module.class_name;
    if (module.count > 1) text += " x " + std::to_string(module.count);
    if (module.stages.size() > 1) text += '\n' + counted_text(block.num_ops, "op") + " of it";
    return text;
}

std::string stage_label(const Inspection& page, int index) {
    const InspectedStage& stage = page.stages[static_cast<size_t>(index)];
    return "stage " + std::to_string(index) + ", rank " + numbers_text(stage.ranks) + "\n" +
           percent_text(stage.time_share) + " of the time, " + bytes_text(stage.weight_bytes) + " of weights";
}

}  // namespace

std::string inspection_dot(const Inspection& page) {
    std::string text =
        "digraph model {\n"
        "  graph [rankdir=TB, fontname=\"sans-serif\", fontsize=12, labeljust=l, bgcolor=\"white\"];\n"
        "  node [shape=box, style=\"rounded,filled\", fillcolor=\"white\", fontname=\"sans-serif\", fontsize=11];\n"
        "  edge [fontname=\"sans-serif\", fontsize=10, color=\"#57606a\"];\n";
    for (int stage = 0; stage < page.num_stages(); ++stage) {
        text += "  subgraph cluster_" + std::to_string(stage) + " {\n    label=" + quoted(stage_label(page, stage)) +
                "; style=\"rounded,filled\"; color=\"#57606a\"; fillcolor=\"" + stage_colour(stage) + "\";\n";
        for (size_t i = 0; i < page.blocks.size(); ++i) {
            if (page.blocks[i].stage != stage) continue;
            text += "    b" + std::to_string(i) + " [label=" + quoted(block_label(page, page.blocks[i])) + "];\n";
        }
        text += "  }\n";
    }
    for (const InspectedFlow& flow : page.flows) {
        const bool crosses =
            page.blocks[static_cast<size_t>(flow.from)].stage != page.blocks[static_cast<size_t>(flow.to)].stage;
        text += "  b" + std::to_string(flow.from) + " -> b" + std::to_string(flow.to);
        if (crosses) text += " [penwidth=2, label=" + quoted(bytes_text(flow.bytes)) + "]";
        text += ";\n";
    }
    return text + "}\n";
}

}  // namespace vpp
