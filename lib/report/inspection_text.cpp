#include "report/inspection_text.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/shell.hpp"
#include "base/units.hpp"
#include "report/advice.hpp"
#include "report/cost_text.hpp"
#include "report/inspection_words.hpp"
#include "report/stage_colours.hpp"
#include "schedule/timeline.hpp"

namespace vpp {

namespace {

constexpr int kIndent = 10;
constexpr size_t kMostModules = 120, kMostEdges = 40;
constexpr size_t kBar = 20;
constexpr double kManyRefused = 0.25;  ///< of the cuts
constexpr size_t kLargestMatrix = 8;   // PP ranks; beyond it a list of those that talk

class InspectionPage {
  public:
    InspectionPage(const Inspection& page, const TextStyle& style) : page_(page), style_(style) {}

    std::string text() {
        add_model();
        add_run();
        add_costs();
        add_ties_and_recompute();
        line("digest", page_.digest);
        text_ += '\n';
        add_modules();
        add_stages();
        add_ranks();
        add_cards();
        add_replicas();
        add_edges();
        add_traffic();
        text_ += draw_timeline(page_.schedule, {}, style_.width, style_.colour);
        add_advice();
        return std::move(text_);
    }

  private:
    void line(const std::string& label, const std::string& what) {
        std::string padded = label;
        padded.resize(kIndent, ' ');
        const std::string lines = wrapped(what, style_.width - kIndent, 0);
        for (size_t begin = 0; begin < lines.size();) {
            const size_t end = lines.find('\n', begin);
            text_ += padded + lines.substr(begin, end + 1 - begin);
            padded.assign(kIndent, ' ');
            begin = end + 1;
        }
    }

    void add_model() {
        const int positions = page_.num_ops - 1, refused = positions - page_.legal_cuts;
        line("model", page_.model_files);
        line("", std::to_string(page_.num_ops) + " ops, " + std::to_string(page_.num_parameters) + " parameters (" +
                     bytes_text(page_.parameter_bytes) + "), buffers " + bytes_text(page_.buffer_bytes));
        const double share = positions > 0 ? static_cast<double>(refused) / positions : 0;
        const auto& [reason, times] = page_.commonest_refusal;
        line("", "cuts: " + std::to_string(page_.legal_cuts) + " of " + std::to_string(positions) +
                     " positions are legal, " + std::to_string(refused) + " refused (" + percent_text(share) + ")" +
                     (share > kManyRefused ? ", " + std::to_string(times) + " of them since " + reason : ""));
        for (const std::string& note : page_.notes) line("", "note: " + note);
    }

    void add_run() {
        const Schedule& schedule = page_.schedule;
        line("data", page_.data_text);
        line("mesh", page_.mesh_text + ", " + counted_text(page_.num_ranks, "rank"));
        if (!page_.cards.empty()) line("cards", cards_text());
        if (!page_.no_room.empty()) line("links", page_.no_room);
        text_ += "start     " + start_line() + "\n";
        const std::string replicas = page_.dp > 1 ? std::to_string(page_.dp) + " replicas x " : "";
        line("step", std::to_string(page_.samples) + " samples = " + replicas +
                         std::to_string(schedule.num_microbatches) + " microbatches of " +
                         std::to_string(page_.microbatch_size) +
                         (page_.accumulate > 1 ? ", in " + std::to_string(page_.accumulate) + " pipeline runs" : ""));
        line("schedule", schedule.name + ", " + counted_text(schedule.num_stages(), "stage") + ", bubble " +
                             percent_text(page_.unit_bubble) + " (F = 1, B = 2, free transfers)");
    }

    /// One line, to be copied.
    std::string start_line() const {
        std::vector<std::string> words{"mpirun",   "-np",          std::to_string(page_.num_ranks), "vpp", "train",
                                       "--config", page_.plan_file};
        for (const std::string& setting : page_.settings) words.insert(words.end(), {"--set", setting});
        return printable(shell_line(words));
    }

    std::string cards_text() const {
        const std::string cards = counted_text(static_cast<int64_t>(page_.cards.size()), "GPU") + " here (" +
                                  page_.cards.front().name + ", " + bytes_text(page_.cards.front().memory_bytes) + ")";
        if (page_.num_ranks == 1) return cards;
        const bool by_mpi = !page_.send_by_nccl();
        const bool by_host = by_mpi && !page_.machine.mpi_moves_card_memory;
        return cards + (page_.share_cards() ? "; ranks share cards" : "; a card for each rank") + ": values go " +
               (by_host ? "through the host's memory" : "from card to card") + (by_mpi ? ", by MPI" : ", by NCCL");
    }

    void add_costs() {
        line("costs", page_.cost_source);
        line("", "bubble " + percent_text(page_.bubble) + ", a step takes " + fixed_text(page_.makespan, 3) + ' ' +
                     page_.cost_unit);
        if (page_.pp > 1) line("", critical_path_text(page_.critical_path));
        if (page_.balance) line("split", "AUTO: " + balance_text(*page_.balance, page_.cost_unit));
        for (size_t i = 0; i < page_.search.size(); ++i) {  // as they are: they hold lines to be copied
            text_ += (i == 0 ? "search    " : "          ") + page_.search[i] + "\n";
        }
    }

    void add_ties_and_recompute() {
        if (page_.num_ties > 0) {
            line("tied", std::to_string(page_.num_ties) + (page_.num_ties == 1 ? " copy" : " copies") +
                             " of parameters in later stages; gradients are " +
                             (page_.exact_ties ? "summed for every microbatch, as on one device"
                                               : "summed once per step: other bits than one device"));
        }
        if (!page_.recompute_text.empty()) line("recompute", page_.recompute_text);
    }

    TextCell stage_cell(int stage) const { return {" " + std::to_string(stage) + " ", stage}; }

    /// Painted where it is one stage.
    static TextCell stages_cell(const std::vector<int>& stages) {
        TextCell cell{" " + numbers_text(stages) + " "};
        if (stages.size() == 1) cell.stage = stages.front();
        return cell;
    }

    void add_modules() {
        text_ += stage_strip(page_, style_) + '\n';
        TextTable table({{"stage", true},
                         {"submodule", true, 12},
                         {"class", true, 8},
                         {"ops"},
                         {"params"},
                         {"weights"},
                         {"FLOPs F"},
                         {"%"}},
                        2);
        for (size_t i = 0; i < page_.modules.size() && i < kMostModules; ++i) add_module(table, page_.modules[i]);
        text_ += table.text(style_);
        if (page_.modules.size() > kMostModules) {
            text_ += "... " + std::to_string(page_.modules.size() - kMostModules) +
                     " more rows (--json shows all, --depth 1 shows fewer)\n";
        }
        text_ += "every op, parameter and buffer is in exactly one stage\n\n";
    }

    void add_module(TextTable& table, const InspectedModule& module) const {
        std::string name(2 * static_cast<size_t>(module.depth), ' ');
        name += module.name;
        const std::string kind = module.class_name + (module.count > 1 ? " x " + std::to_string(module.count) : "");
        table.add({stages_cell(module.stages),
                   {name},
                   {kind},
                   {std::to_string(module.num_ops)},
                   {count_text(static_cast<double>(module.num_parameters))},
                   {bytes_text(module.parameter_bytes)},
                   {count_text(module.flops)},
                   {fixed_text(page_.flops > 0 ? 100 * module.flops / page_.flops : 0, 1)}});
    }

    static std::string units_text(const InspectedStage& stage) {
        return std::to_string(stage.whole_units) +
               (stage.cut_units > 0 ? "+" + std::to_string(stage.cut_units) : std::string());
    }

    void add_stages() {
        TextTable work({{"stage", true},
                        {"rank"},
                        {"ops"},
                        {"units"},
                        {"parameters"},
                        {"FLOPs F"},
                        {"%"},
                        {"time %"},
                        {"submodules", true, 10}},
                       2);
        TextTable bytes({{"stage", true},
                         {"rank"},
                         {"weights"},
                         {"gradients"},
                         {"optimizer"},
                         {"buffers"},
                         {"activations"},
                         {"receives"}},
                        2);
        for (int index = 0; index < page_.num_stages(); ++index) {
            const InspectedStage& stage = page_.stages[static_cast<size_t>(index)];
            work.add({stage_cell(index),
                      {numbers_text(stage.ranks)},
                      {std::to_string(stage.first_op) + "-" + std::to_string(stage.last_op)},
                      {units_text(stage)},
                      {std::to_string(stage.num_parameters)},
                      {count_text(stage.flops)},
                      {fixed_text(100 * stage.flops_share, 1)},
                      {fixed_text(100 * stage.time_share, 1)},
                      {stage.modules}});
            bytes.add({stage_cell(index),
                       {numbers_text(stage.ranks)},
                       {bytes_text(stage.weight_bytes)},
                       {bytes_text(stage.gradient_bytes)},
                       {bytes_text(stage.optimizer_bytes)},
                       {bytes_text(stage.buffer_bytes)},
                       {bytes_text(stage.activation_bytes)},
                       {bytes_text(stage.receive_bytes)}});
        }
        add_table(work, "units: whole + cut ones; FLOPs of one microbatch; time %: of the computing of a step");
        add_table(bytes, "activations and receives: of one microbatch");
    }

    void add_ranks() {
        const bool casts = std::ranges::any_of(page_.ranks, [](const auto& rank) { return rank.cast_bytes > 0; });
        const auto with_casts = [&](auto row, auto entry) {
            constexpr int kBehindBuffers = 6;
            if (casts) row.insert(row.begin() + kBehindBuffers, std::move(entry));
            return row;
        };
        TextTable memory(with_casts(std::vector<TextColumn>{{"rank", true},
                                                            {"stages", true},
                                                            {"weights"},
                                                            {"gradients"},
                                                            {"optimizer"},
                                                            {"buffers"},
                                                            {"in flight <="},
                                                            {"messages"},
                                                            {"save copy"},
                                                            {"total"}},
                                    TextColumn{"casts"}),
                         2);
        TextTable step({{"rank", true}, {"stages", true}, {"held"}, {"load"}, {"busy %"}, {"", true}, {"sent a step"}},
                       2);
        for (const InspectedRank& rank : page_.ranks) {
            memory.add(with_casts(std::vector<TextCell>{{numbers_text(rank.ranks)},
                                                        stages_cell(rank.stages),
                                                        {bytes_text(rank.weight_bytes)},
                                                        {bytes_text(rank.gradient_bytes)},
                                                        {bytes_text(rank.optimizer_bytes)},
                                                        {bytes_text(rank.buffer_bytes)},
                                                        {bytes_text(rank.activation_bytes)},
                                                        {bytes_text(rank.receive_bytes)},
                                                        {bytes_text(rank.saved_copy_bytes)},
                                                        {bytes_text(rank.total_bytes)}},
                                  TextCell{bytes_text(rank.cast_bytes)}));
            step.add({{numbers_text(rank.ranks)},
                      stages_cell(rank.stages),
                      {std::to_string(rank.in_flight)},
                      {fixed_text(rank.load, 2)},
                      {fixed_text(100 * rank.busy_share, 1)},
                      {bar(rank.busy_share)},
                      {bytes_text(rank.sent_bytes)}});
        }
        int64_t input_bytes = 0;
        for (const InspectedRank& rank : page_.ranks) input_bytes = std::max(input_bytes, rank.input_bytes);
        add_table(memory,
                  "bytes of a rank at its fullest moment; in its total up to " + bytes_text(input_bytes) +
                      " of data that are read ahead" +
                      (casts ? "; casts: of weights that ops take in half precision, for all microbatches" : ""));
        add_table(step, "held: stage activations at once, at most; load: over a mean rank; busy: of a step");
    }

    void add_cards() {
        if (page_.cards.empty()) return;
        TextTable table(
            {{"card"}, {"", true}, {"ranks"}, {"keeps <="}, {"recorded"}, {"memory"}, {"full %"}, {"", true}}, 2);
        for (size_t i = 0; i < page_.cards.size(); ++i) {
            const CardShare& card = page_.cards[i];
            table.add({{std::to_string(i)},
                       {card.name},
                       {std::to_string(card.num_ranks)},
                       {bytes_text(card.kept_bytes)},
                       {card.recorded_bytes > 0 ? bytes_text(card.recorded_bytes) : "-"},
                       {bytes_text(card.memory_bytes)},
                       {fixed_text(100 * card.fullness(), 1)},
                       {bar(card.fullness())}});
        }
        add_table(table,
                  "if all ranks run on this machine, taking its cards in turn; beside what CUDA and NCCL take for "
                  "themselves; recorded: about, with recordings of ops, which are left out where there is no room");
    }

    /// "|#####.....|"
    static std::string bar(double share) {
        const auto full = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kBar + 0.5);
        return "|" + std::string(full, '#') + std::string(kBar - full, '.') + "|";
    }

    /// With what it says below it.
    void add_table(const TextTable& table, const std::string& words) {
        text_ += table.text(style_) + wrapped(words, style_.width, 0) + '\n';
    }

    /// What goes along the DP axis, and what ZeRO-1 saves or would save.
    void add_replicas() {
        if (page_.dp == 1) return;
        TextTable table(
            {{"PP"}, {"ranks by DP", true}, {"sent to replicas a step"}, {"optimizer with ZeRO-1"}, {"without"}}, 2);
        for (size_t pp = 0; pp < page_.ranks.size(); ++pp) {
            const InspectedRank& rank = page_.ranks[pp];
            table.add({{std::to_string(pp)},
                       {numbers_text(rank.ranks)},
                       {bytes_text(rank.replica_bytes)},
                       {bytes_text(rank.zero1_optimizer_bytes)},
                       {bytes_text(rank.unshared_optimizer_bytes)}});
        }
        text_ += table.text(style_);
        text_ += wrapped(std::string("replica r takes the r-th part of the batch; gradients are added in the order of "
                                     "the replicas") +
                             (page_.zero1 ? ", each updates its share (mesh.zero1)" : ""),
                         style_.width, 0) +
                 '\n';
    }

    void add_edges() {
        if (page_.edges.empty()) return;
        TextTable table(
            {{"edge"}, {"from -> to", true}, {"bytes"}, {"gradient", true}, {"a step"}, {"value", true, 12}}, 2);
        for (size_t i = 0; i < page_.edges.size() && i < kMostEdges; ++i) {
            const InspectedEdge& edge = page_.edges[i];
            std::string value = edge.name + (edge.type.empty() ? "" : " " + edge.type);
            if (edge.tied) value += ", tied: stage " + std::to_string(edge.producer) + " owns it";
            table.add({{std::to_string(edge.id)},
                       {std::to_string(edge.producer) + " -> " + std::to_string(edge.consumer)},
                       {edge.bytes ? bytes_text(*edge.bytes) : "-"},
                       {edge.gradient_to ? "to " + std::to_string(*edge.gradient_to) : "-"},
                       {bytes_text(edge.step_bytes)},
                       {value}});
        }
        text_ += table.text(style_);
        if (page_.edges.size() > kMostEdges) {
            text_ += "  ... " + std::to_string(page_.edges.size() - kMostEdges) + " more (--json shows all)\n";
        }
        text_ +=
            wrapped("bytes of one microbatch; a step: both ways, all microbatches, between ranks", style_.width, 0) +
            '\n';
    }

    void add_traffic() {
        if (page_.links.empty()) return;
        text_ += page_.ranks.size() <= kLargestMatrix ? traffic_matrix() : traffic_list();
        text_ += '\n';
    }

    /// A row for each sender.
    std::string traffic_matrix() const {
        std::vector<TextColumn> columns{{"sends a step", true}};
        for (const InspectedRank& rank : page_.ranks) columns.push_back({"to " + numbers_text(rank.ranks)});
        TextTable table(columns, 1);
        for (size_t from = 0; from < page_.ranks.size(); ++from) {
            std::vector<TextCell> row{{"rank " + numbers_text(page_.ranks[from].ranks)}};
            for (size_t to = 0; to < page_.ranks.size(); ++to) {
                row.push_back({from == to ? "." : "-"});
                for (const InspectedLink& link : page_.links) {
                    if (link.from != static_cast<int>(from) || link.to != static_cast<int>(to)) continue;
                    row.back().text = bytes_text(link.forward_bytes + link.backward_bytes);
                }
            }
            table.add(std::move(row));
        }
        return table.text(style_);
    }

    std::string traffic_list() const {
        TextTable table({{"rank"}, {"sends to", true}, {"forward a step"}, {"backward a step"}, {"messages"}}, 2);
        for (const InspectedLink& link : page_.links) {
            table.add({{numbers_text(page_.ranks[static_cast<size_t>(link.from)].ranks)},
                       {numbers_text(page_.ranks[static_cast<size_t>(link.to)].ranks)},
                       {bytes_text(link.forward_bytes)},
                       {bytes_text(link.backward_bytes)},
                       {std::to_string(link.messages)}});
        }
        return table.text(style_);
    }

    void add_advice() {
        const std::vector<Advice> advice = advise(page_);
        if (advice.empty()) return;
        text_ += "\nadvice\n";
        for (const Advice& entry : advice) text_ += wrapped("- " + entry.text, style_.width, 2);
    }

    const Inspection& page_;
    TextStyle style_;
    std::string text_;
};

}  // namespace

std::string stage_strip(const Inspection& inspection, const TextStyle& style) {
    const size_t num_stages = inspection.stages.size();
    const auto page = static_cast<size_t>(std::max(style.width, 40));
    const size_t room = page > num_stages + 1 ? page - num_stages - 1 : 0;  // bars around every stage
    if (room < 3 * num_stages) return counted_text(static_cast<int64_t>(num_stages), "stage") + "\n";
    std::string strip = "|";
    double before = 0;
    size_t used = 0;
    for (size_t i = 0; i < num_stages; ++i) {
        before += inspection.stages[i].time_share;
        const size_t left = 3 * (num_stages - 1 - i);  // for the stages behind it
        size_t width = static_cast<size_t>(before * static_cast<double>(room) + 0.5);
        width = std::clamp(width > used ? width - used : 0, size_t{3}, room - used - left);
        if (i + 1 == num_stages) width = room - used;
        used += width;
        const std::string number = std::to_string(i);
        const std::string whole = number + " " + percent_text(inspection.stages[i].time_share);
        std::string label = whole.size() <= width ? whole : number.substr(0, width);
        const size_t blanks = width - label.size();
        label = std::string(blanks / 2, ' ') + label + std::string(blanks - blanks / 2, ' ');
        strip += (style.colour ? painted(label, static_cast<int>(i)) : label) + "|";
    }
    return strip + "\n";
}

std::string inspection_text(const Inspection& inspection, const TextStyle& style) {
    return InspectionPage(inspection, style).text();
}

}  // namespace vpp
