#include "report/advice.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "report/inspection_words.hpp"
#include "schedule/costs.hpp"

namespace vpp {

namespace {

// When a rule speaks.
constexpr double kUnevenLoad = 1.15;         // of the busiest rank over the mean
constexpr double kLargeBubble = 0.15;        // of a step
constexpr double kSmallBubble = 0.10;        // what more microbatches should reach
constexpr double kMuchLighterCut = 0.7;      // bytes of the better cut over those of this one
constexpr double kLongTransfer = 0.25;       // of F of a mean stage
constexpr double kFullMemory = 0.9;          // of what the machine has
constexpr double kManyOptimizerBytes = 0.1;  // of a rank's memory

using Texts = std::vector<std::string>;

std::string times_text(double factor) {
    return fixed_text(factor, 2) + " times";
}

/// What it takes to have another number of microbatches.
std::string microbatch_setting(const Inspection& page, int num_microbatches) {
    const std::string number = std::to_string(num_microbatches);
    const int64_t parts = int64_t{num_microbatches} * page.dp;
    if (page.samples % parts == 0) {
        return "pipeline.num_microbatches = " + number + " (of " + counted_text(page.samples / parts, "sample") + ")";
    }
    const int64_t batch = parts * page.microbatch_size;
    return "pipeline.num_microbatches = " + number + " with train.global_batch_size = " + std::to_string(batch);
}

Texts uneven_ranks(const Inspection& page) {
    if (page.pp < 2) return {};
    size_t busiest = 0;
    for (size_t i = 0; i < page.ranks.size(); ++i) {
        if (page.ranks[i].load > page.ranks[busiest].load) busiest = i;
    }
    const double load = page.ranks[busiest].load;
    const double gain = page.makespan > 0 ? 1 - page.even_makespan / page.makespan : 0;
    if (load < kUnevenLoad || gain < kWorthwhileGain) return {};
    const std::vector<int>& stages = page.ranks[busiest].stages;
    std::string text = "rank " + numbers_text(page.ranks[busiest].ranks) + " (stage " + numbers_text(stages) +
                       ") has " + times_text(load) +
                       " the work of a mean rank, and every microbatch waits for it: with even stages a step would "
                       "take " +
                       percent_text(gain) + " less; ";
    if (page.split_method == "AUTO") return {text + "no cut is better; smaller units or more stages a rank may help"};
    if (page.split_method == "FLOPS")
        return {text + "smaller units, fewer stages or virtual_chunks = 2 may even it out"};
    if (page.split_method == "MANUAL_EAGER") return {text + "move submodules from its table to a neighbour's"};
    if (page.split_method == "MANUAL") return {text + "move its split point, or try pipeline.split_method = \"FLOPS\""};
    return {text + "try pipeline.split_method = \"FLOPS\""};
}

Texts divided_backward(const Inspection& page) {
    if (!page.undivided_makespan || page.makespan <= 0) return {};
    const double gain = 1 - page.makespan / *page.undivided_makespan;
    if (gain >= kWorthwhileGain) return {};
    const auto time = [&](double value) { return fixed_text(value, 3) + ' ' + page.cost_unit; };
    return {page.schedule.name + (gain > 0 ? " hardly pays" : " cannot pay") +
            " here: by measured costs a step takes " + time(page.makespan) + " with it and " +
            time(*page.undivided_makespan) + " with 1F1B, as I and W together take " +
            times_text(page.halves_over_whole) +
            " what B does; set schedule_type = \"1F1B\", or \"AUTO\", which chooses by the same costs; the same bits"};
}

Texts more_microbatches(const Inspection& page) {
    if (page.bubble < kLargeBubble || page.accumulate > 1) return {};
    const MicrobatchForecast* best = nullptr;
    for (const MicrobatchForecast& forecast : page.more_microbatches) {
        if (page.bubble - forecast.bubble < kWorthwhileGain) continue;
        if (!best || best->bubble > kSmallBubble) best = &forecast;
    }
    if (!best) return {};
    return {"the bubble is " + percent_text(page.bubble) + " with " +
            counted_text(page.schedule.num_microbatches, "microbatch", "microbatches") + "; with " +
            std::to_string(best->num_microbatches) + " it would be " + percent_text(best->bubble) + ": set " +
            microbatch_setting(page, best->num_microbatches) + "; other bits, as sums are formed of other parts"};
}

Texts one_pipeline_run(const Inspection& page) {
    if (page.accumulate == 1 || page.more_microbatches.empty()) return {};
    const MicrobatchForecast& one = page.more_microbatches.front();
    if (page.bubble - one.bubble < kWorthwhileGain) return {};
    return {"the bubble is " + percent_text(page.bubble) + " in " + std::to_string(page.accumulate) +
            " pipeline runs a step; in one run it would be " + percent_text(one.bubble) +
            ": set pipeline.num_microbatches = " + std::to_string(one.num_microbatches) +
            " and train.accumulate = 1; the same bits"};
}

Texts heavy_cuts(const Inspection& page) {
    Texts texts;
    for (size_t i = 0; i < page.cuts.size(); ++i) {
        const InspectedCut& cut = page.cuts[i];
        const double ratio = cut.bytes > 0 ? static_cast<double>(cut.better_bytes) / static_cast<double>(cut.bytes) : 1;
        if (ratio > kMuchLighterCut) continue;
        const std::string place = "after op " + std::to_string(cut.better_op - 1) +
                                  (cut.better_after.empty() ? "" : " (of '" + cut.better_after + "')");
        const std::string remedy = page.split_method == "MANUAL_EAGER"
                                       ? "other stages can put it there"
                                       : "a split point (split_method = \"MANUAL\") or units that are not cut "
                                         "(smallest_unsplittable_units) can put it there";
        texts.push_back("the cut between stages " + std::to_string(i) + " and " + std::to_string(i + 1) + " carries " +
                        bytes_text(cut.bytes) + " a microbatch; a cut " + place + " would carry " +
                        bytes_text(cut.better_bytes) + ", with the larger of both stages at " +
                        times_text(cut.better_largest) + " its FLOPs: " + remedy);
    }
    return texts;
}

Texts long_transfers(const Inspection& page) {
    const auto longest = std::max_element(page.cuts.begin(), page.cuts.end(), [](const auto& a, const auto& b) {
        return a.transfer_share < b.transfer_share;
    });
    if (longest == page.cuts.end() || longest->transfer_share < kLongTransfer) return {};
    const auto index = longest - page.cuts.begin();
    return {"a message from stage " + std::to_string(index) + " to " + std::to_string(index + 1) + " takes " +
            percent_text(longest->transfer_share) +
            " of a mean forward: the stages are small for what they send; fewer stages, or larger microbatches of a "
            "larger model, hide transfers better"};
}

Texts idle_cores(const Inspection& page) {
    if (!page.cards.empty()) return {};
    const int used = page.num_ranks * page.threads;
    const int threads = page.machine.cores / std::max(1, page.num_ranks);
    if (page.machine.cores == 0 || used >= page.machine.cores || threads <= page.threads) return {};
    const int all = threads * page.num_ranks;
    return {counted_text(page.num_ranks, "rank") + (page.num_ranks == 1 ? " uses " : " use ") + std::to_string(used) +
            " of " + std::to_string(page.machine.cores) +
            " cores on this machine; mesh.threads = " + std::to_string(threads) + " would use " +
            (all == page.machine.cores ? std::string("all") : std::to_string(all)) +
            ", with other bits (sums are formed in another order)"};
}

Texts oversubscription(const Inspection& page) {
    if (!page.cards.empty()) return {};
    const int used = page.num_ranks * page.threads;
    if (page.machine.cores == 0 || used <= page.machine.cores) return {};
    return {counted_text(page.num_ranks, "rank") + " of " + counted_text(page.threads, "thread") + " want " +
            std::to_string(used) + " cores, this machine has " + std::to_string(page.machine.cores) +
            ": on it alone a step takes at least " + times_text(static_cast<double>(used) / page.machine.cores) +
            " as long as the drawing says; mpirun needs --oversubscribe and OMP_NUM_THREADS=1" +
            (page.threads > 1 ? ", and mesh.threads can be smaller" : "")};
}

/// Of all ranks on one machine.
Texts card_memory(const Inspection& page) {
    Texts texts;
    for (size_t i = 0; i < page.cards.size(); ++i) {
        const CardShare& card = page.cards[i];
        const auto wants = [&](int64_t bytes) {
            return counted_text(card.num_ranks, "rank") + " may want " + bytes_text(bytes) + " on card " +
                   std::to_string(i) + ", which has " + bytes_text(card.memory_bytes) + ": ";
        };
        if (card.fullness() > kFullMemory) {
            texts.push_back(wants(card.kept_bytes) + "it takes more cards or more stages, smaller microbatches" +
                            (page.recomputes ? "" : ", or pipeline.recompute.what = \"stage\""));
        } else if (static_cast<double>(card.recorded_bytes) > kFullMemory * static_cast<double>(card.memory_bytes)) {
            texts.push_back("with recordings of their ops " + wants(card.recorded_bytes) +
                            "where these find no room, ops run one by one, which is slower");
        }
    }
    return texts;
}

Texts card_kernels(const Inspection& page) {
    Texts texts;
    for (const InspectedHostOp& op : page.host_ops) {
        texts.push_back(op.kind + " in '" + op.module + "' runs on the host" +
                        (op.in_backward ? " in its backward pass" : "") +
                        ", since cards have no kernel for it that gives the same bits every time: its card waits, so "
                        "another op may be faster");
    }
    return texts;
}

/// Of all ranks on one machine, beside what lies on its cards.
Texts host_memory(const Inspection& page) {
    int64_t copies = 0, all = 0;
    for (const InspectedRank& rank : page.ranks) {
        copies += rank.saved_copy_bytes * static_cast<int64_t>(rank.ranks.size());
        all += rank.host_bytes() * static_cast<int64_t>(rank.ranks.size());
    }
    const double room = kFullMemory * static_cast<double>(page.machine.memory_bytes);
    if (page.cards.empty() || page.machine.memory_bytes == 0 || static_cast<double>(all) <= room) return {};
    return {"beside their cards all ranks together may want " + bytes_text(all) + " for data that are read ahead and " +
            "for saves in the background, this machine has " + bytes_text(page.machine.memory_bytes) +
            ": checkpoint.background = false saves " + bytes_text(copies) + ", data.read_ahead_bytes bounds the data"};
}

/// Of all ranks on one machine.
Texts memory(const Inspection& page) {
    if (!page.cards.empty()) return {};
    int64_t all = 0, recomputed = 0;
    for (const InspectedRank& rank : page.ranks) {
        all += rank.total_bytes * static_cast<int64_t>(rank.ranks.size());
        recomputed += rank.recomputed_total_bytes * static_cast<int64_t>(rank.ranks.size());
    }
    const double room = kFullMemory * static_cast<double>(page.machine.memory_bytes);
    if (page.machine.memory_bytes == 0 || static_cast<double>(all) <= room) return {};
    std::string text = "all ranks together may want " + bytes_text(all) + ", this machine has " +
                       bytes_text(page.machine.memory_bytes);
    if (!page.recomputes && static_cast<double>(recomputed) <= room) {
        return {text + "; pipeline.recompute.what = \"stage\" would fit with " + bytes_text(recomputed) +
                ", the same bits and about a quarter more time"};
    }
    return {
        text + "; it takes more machines, smaller microbatches" +
        (page.recomputes ? std::string(" or a smaller model") : ", or with recompute still " + bytes_text(recomputed))};
}

Texts far_ties(const Inspection& page) {
    Texts texts;
    for (const InspectedEdge& edge : page.edges) {
        if (!edge.tied || edge.per_step || edge.step_bytes == 0) continue;
        texts.push_back("the tied weight '" + edge.name + "' is owned by stage " + std::to_string(edge.producer) +
                        " and used by stage " + std::to_string(edge.consumer) + ": its gradient of " +
                        bytes_text(edge.bytes.value_or(0)) + " travels for every microbatch, " +
                        bytes_text(edge.step_bytes) +
                        " a step; pipeline.tied_gradients = \"per_step\" sends it once, with other bits");
    }
    return texts;
}

Texts zero1(const Inspection& page) {
    if (page.dp < 2 || page.zero1) return {};
    int64_t saved = 0, total = 0;
    for (const InspectedRank& rank : page.ranks) {
        const int64_t of_rank = rank.unshared_optimizer_bytes - rank.zero1_optimizer_bytes;
        if (of_rank <= saved) continue;
        saved = of_rank;
        total = rank.total_bytes;
    }
    if (static_cast<double>(saved) <= kManyOptimizerBytes * static_cast<double>(total)) return {};
    return {"mesh.zero1 = true would save up to " + bytes_text(saved) + " of " + bytes_text(total) +
            " on a rank: replicas share the optimizer state; the same bits"};
}

Texts all_held(const Inspection& page) {
    if (page.schedule.name != "GPIPE" || page.pp < 2 || page.schedule.num_microbatches <= page.pp) return {};
    return {"GPIPE holds the activations of all " +
            counted_text(page.schedule.num_microbatches, "microbatch", "microbatches") +
            ", schedule_type = \"1F1B\" those of at most " + std::to_string(page.pp) +
            ", with the same bubble at even stages and the same bits"};
}

struct Rule {
    const char* name;
    Texts (*say)(const Inspection&);
};

constexpr Rule kRules[] = {
    {"card_kernels", card_kernels},
    {"card_memory", card_memory},
    {"host_memory", host_memory},
    {"memory", memory},
    {"oversubscription", oversubscription},
    {"idle_cores", idle_cores},
    {"uneven_ranks", uneven_ranks},
    {"divided_backward", divided_backward},
    {"more_microbatches", more_microbatches},
    {"one_pipeline_run", one_pipeline_run},
    {"heavy_cut", heavy_cuts},
    {"long_transfer", long_transfers},
    {"far_tie", far_ties},
    {"all_held", all_held},
    {"zero1", zero1},
};

}  // namespace

std::vector<Advice> advise(const Inspection& inspection) {
    std::vector<Advice> advice;
    for (const Rule& rule : kRules) {
        for (std::string& text : rule.say(inspection)) advice.push_back({rule.name, std::move(text)});
    }
    return advice;
}

std::vector<std::string> advice_rules() {
    std::vector<std::string> names;
    for (const Rule& rule : kRules) names.emplace_back(rule.name);
    return names;
}

}  // namespace vpp
