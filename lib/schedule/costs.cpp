#include "schedule/costs.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

namespace {

constexpr size_t kMostPlaces = 6;
constexpr size_t kMostWholeDigits = 6;
constexpr int kPercent = 100;
constexpr Ticks kMostSharesOfARank = Ticks{1} << 31;

/// A decimal number, exact: digits / 10^places.
struct Decimal {
    int64_t digits = 0;
    size_t places = 0;
};

/// One part "F=1/1/3" of a costs text.
struct Part {
    std::string text;
    std::string key;
    std::vector<Decimal> values;
};

/// How the time of a full rank is shared by its stages.
struct Sharing {
    int num_stages = 1;
    int num_microbatches = 1;
    Ticks shares = 1;         ///< of a full rank; every rank's number of stages divides it
    std::vector<int> beside;  ///< by stage, how many stages its rank has; empty = `shares` everywhere

    /// How many of the shares a stage has.
    Ticks of_stage(int stage) const { return beside.empty() ? 1 : shares / beside[static_cast<size_t>(stage)]; }
};

[[noreturn]] void refuse(const std::string& part, const std::string& what) {
    throw Error(ErrorKind::CommandLine, "costs: '" + printable(part.substr(0, 60)) + "' " + what);
}

std::vector<std::string> cut_at(const std::string& text, char separator) {
    std::vector<std::string> parts(1);
    for (char letter : text) {
        if (letter == separator) {
            parts.emplace_back();
        } else {
            parts.back() += letter;
        }
    }
    return parts;
}

Decimal parse_decimal(const std::string& text, const std::string& part) {
    const size_t point = std::min(text.find('.'), text.size());
    const std::string whole = text.substr(0, point);
    const std::string rest = point < text.size() ? text.substr(point + 1) : "";
    const auto is_digits = [](const std::string& digits) {
        return std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    const bool is_number = !(whole + rest).empty() && is_digits(whole) && is_digits(rest);
    if (!is_number || whole.size() > kMostWholeDigits || rest.size() > kMostPlaces) {
        refuse(part, "is no cost (expected numbers from 0 with at most six digits on each side of the point)");
    }
    return {std::stoll("0" + whole + rest), rest.size()};
}

Part parse_part(const std::string& text, int num_stages) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) refuse(text, "has no '=' (expected parts such as F=1)");
    Part part{text, text.substr(0, equals), {}};
    static const std::vector<std::string> kKeys{"F", "B", "I", "W", "comm", "transfer", "overlap"};
    if (std::find(kKeys.begin(), kKeys.end(), part.key) == kKeys.end()) {
        refuse(text, "names no cost (expected F, B, I, W, comm, transfer or overlap)");
    }
    for (const std::string& value : cut_at(text.substr(equals + 1), '/')) {
        part.values.push_back(parse_decimal(value, text));
    }
    const bool by_edge = part.key == "comm" || part.key == "transfer";
    const int most = part.key == "overlap" ? 1 : num_stages - (by_edge ? 1 : 0);
    if (part.values.size() != 1 && part.values.size() != static_cast<size_t>(most)) {
        const std::string several = std::to_string(most) + (by_edge ? " places between two stages" : " stages");
        refuse(text, "has " + std::to_string(part.values.size()) + " values (expected one" +
                         (most > 1 ? ", or one for each of the " + several : "") + ')');
    }
    return part;
}

int64_t power_of_ten(size_t exponent) {
    int64_t power = 1;
    for (size_t i = 0; i < exponent; ++i) power *= 10;
    return power;
}

/// The parts as whole ticks.
class CostReader {
  public:
    CostReader(const std::string& text, Sharing sharing) : sharing_(std::move(sharing)) {
        if (text.empty()) return;
        for (const std::string& word : cut_at(text, ',')) {
            Part part = parse_part(word, sharing_.num_stages);
            if (find(part.key)) refuse(word, "is named twice");
            for (const Decimal& value : part.values) places_ = std::max(places_, value.places);
            parts_.push_back(std::move(part));
        }
        finer_ = find_finer();
        check_precision(text);
    }

    ScheduleCosts read() const {
        ScheduleCosts costs;
        costs.ticks_per_unit = ticks_per_unit();
        for (int stage = 0; stage < sharing_.num_stages; ++stage) costs.stages.push_back(stage_costs(stage));
        read_transfers(costs);
        if (const Part* overlap = find("overlap")) costs.overlap_percent = percent(*overlap);
        return costs;
    }

  private:
    const Part* find(const std::string& key) const {
        const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const Part& p) { return p.key == key; });
        return found == parts_.end() ? nullptr : &*found;
    }

    /// What divides the last decimal place, so that half a B and the part of a stage that overlaps are whole ticks.
    int64_t find_finer() const {
        const Part* overlap = find("overlap");
        const int64_t of_overlap = overlap ? kPercent / std::gcd(kPercent, percent(*overlap)) : 1;
        const bool halves_backward = find("B") && !find("I") && !find("W");
        return halves_backward ? 2 * of_overlap : of_overlap;
    }

    /// All actions and messages one after the other stay within whole numbers.
    void check_precision(const std::string& text) const {
        double units = 3;  // F, I and W where they are not named
        for (const Part& part : parts_) {
            double largest = 0;
            for (const Decimal& value : part.values) {
                largest = std::max(largest,
                                   static_cast<double>(value.digits) / static_cast<double>(power_of_ten(value.places)));
            }
            if (part.key != "overlap") units += 2 * largest;  // a message each way
        }
        const double of_all = units * static_cast<double>(sharing_.num_stages) * sharing_.num_microbatches;
        if (of_all * ticks_per_unit() < 0x1p62) return;
        refuse(text, "has too many digits for so many stages and microbatches; try fewer decimal places");
    }

    /// A value in units / whole_unit().
    Ticks ticks(const Decimal& value) const { return value.digits * power_of_ten(places_ - value.places) * finer_; }
    /// One share of a rank that takes one unit.
    Ticks whole_unit() const { return power_of_ten(places_) * finer_; }
    double ticks_per_unit() const { return static_cast<double>(whole_unit()) * static_cast<double>(sharing_.shares); }

    StageCosts stage_costs(int stage) const {
        const Ticks one = whole_unit() * sharing_.of_stage(stage);
        const Ticks forward = stage_ticks("F", stage).value_or(one);
        const auto backward = stage_ticks("B", stage), input = stage_ticks("I", stage),
                   weight = stage_ticks("W", stage);
        if (backward) return with_halves({forward, *backward}, input, weight);
        if (input && weight) return {forward, *input + *weight, *input, *weight};
        if (input || weight) refuse(find(input ? "I" : "W")->text, "needs B, or both I and W");
        return {forward, 2 * one, one, one};
    }

    /// I and W of a B: halves where neither is named, else what is named and the rest.
    StageCosts with_halves(StageCosts costs, std::optional<Ticks> input, std::optional<Ticks> weight) const {
        const Ticks whole = costs.backward;
        costs.input_gradient = input ? *input : weight ? whole - *weight : whole / 2;
        costs.weight_gradient = weight ? *weight : whole - costs.input_gradient;
        if (costs.input_gradient < 0 || costs.weight_gradient < 0) {
            refuse(find("B")->text, "is less than '" + find(input ? "I" : "W")->text + "', and B is I + W");
        }
        if (costs.input_gradient + costs.weight_gradient != whole) {
            refuse(find("B")->text, "is not I + W (expected B alone, I and W, or three that agree)");
        }
        return costs;
    }

    std::optional<Ticks> stage_ticks(const std::string& key, int stage) const {
        const Part* part = find(key);
        if (!part) return std::nullopt;
        if (part->values.size() == 1 && sharing_.num_stages > 1) {
            return ticks(part->values[0]) * sharing_.of_stage(stage);
        }
        return ticks(part->values[static_cast<size_t>(stage)]) * sharing_.shares;
    }

    /// What a message takes at place `edge` of a part; 0 without the part.
    Ticks edge_ticks(const Part* part, size_t edge) const {
        if (!part) return 0;
        return ticks(part->values[part->values.size() == 1 ? 0 : edge]) * sharing_.shares;
    }

    void read_transfers(ScheduleCosts& costs) const {
        const Part *latency = find("comm"), *transfer = find("transfer");
        const auto num_values = [](const Part* part) { return part ? part->values.size() : 0; };
        const size_t num_edges = std::max<size_t>({1, num_values(latency), num_values(transfer)});
        for (size_t edge = 0; edge < num_edges; ++edge) {
            const Ticks occupied = edge_ticks(transfer, edge), whole = edge_ticks(latency, edge) + occupied;
            costs.transfer = std::max(costs.transfer, whole);
            costs.occupied = std::max(costs.occupied, occupied);
            if (num_edges == 1) return;
            costs.transfer_of[static_cast<int>(edge)] = whole;
            costs.occupied_of[static_cast<int>(edge)] = occupied;
        }
    }

    static int percent(const Part& part) {
        const Decimal& value = part.values[0];
        const int64_t whole = value.digits / power_of_ten(value.places);
        if (whole > kPercent || value.digits % power_of_ten(value.places) != 0) {
            refuse(part.text, "is no percentage (expected a whole number from 0 to 100)");
        }
        return static_cast<int>(whole);
    }

    Sharing sharing_;
    std::vector<Part> parts_;
    size_t places_ = 0;
    int64_t finer_ = 1;
};

Sharing sharing_of(const Schedule& schedule) {
    Sharing sharing{schedule.num_stages(), schedule.num_microbatches, 1, {}};
    std::vector<int> held(static_cast<size_t>(schedule.num_ranks), 0);
    for (const int rank : schedule.rank_of_stage) ++held.at(static_cast<size_t>(rank));
    for (const int rank : schedule.rank_of_stage) sharing.beside.push_back(held[static_cast<size_t>(rank)]);
    for (const int count : sharing.beside) {
        sharing.shares = std::lcm(sharing.shares, Ticks{count});
        if (sharing.shares <= kMostSharesOfARank) continue;
        throw Error(ErrorKind::CommandLine,
                    "costs: the ranks hold too many different numbers of stages for times that are exact (got up to " +
                        std::to_string(*std::max_element(held.begin(), held.end())) +
                        " stages on a rank); use fewer different numbers");
    }
    return sharing;
}

}  // namespace

Ticks StageCosts::of(ActionKind kind) const {
    switch (kind) {
        case ActionKind::F:
            return forward;
        case ActionKind::B:
            return backward;
        case ActionKind::I:
            return input_gradient;
        case ActionKind::W:
            return weight_gradient;
        default:
            return 0;
    }
}

StageCosts ScheduleCosts::of_stage(int stage) const {
    return stages.empty() ? StageCosts{} : stages.at(static_cast<size_t>(stage));
}

Ticks ScheduleCosts::of_transfer(int edge) const {
    const auto found = transfer_of.find(edge);
    return found == transfer_of.end() ? transfer : found->second;
}

Ticks ScheduleCosts::of_occupied(int edge) const {
    const auto found = occupied_of.find(edge);
    return found == occupied_of.end() ? occupied : found->second;
}

Ticks ScheduleCosts::of_pair(const Action& forward, const Action& backward) const {
    const Ticks one = of_stage(forward.stage).of(forward.kind), other = of_stage(backward.stage).of(backward.kind);
    return one + other - std::min(one, other) * overlap_percent / kPercent;
}

ScheduleCosts parse_costs(const std::string& text, const ScheduleSize& size) {
    return CostReader(text, {size.num_stages(), size.num_microbatches, size.stages_per_rank, {}}).read();
}

ScheduleCosts parse_costs_for(const Schedule& schedule, const std::string& text) {
    return CostReader(text, sharing_of(schedule)).read();
}

}  // namespace vpp
