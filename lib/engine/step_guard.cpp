#include "engine/step_guard.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/error.hpp"
#include "base/units.hpp"

namespace vpp {

namespace {

constexpr double kLeastDeviation = 0.01;  // of the mean

StepGuard::Verdict verdict_of(const std::string& word) {
    if (word == "warn") return StepGuard::Verdict::Warn;
    if (word == "skip") return StepGuard::Verdict::Skip;
    return StepGuard::Verdict::Stop;
}

struct Statistics {
    double mean = 0, deviation = 0;
};

Statistics statistics_of(const std::deque<double>& values) {
    const auto count = static_cast<double>(values.size());
    double sum = 0, squares = 0;
    for (const double value : values) sum += value;
    const double mean = sum / count;
    for (const double value : values) squares += (value - mean) * (value - mean);
    return {mean, std::max(std::sqrt(squares / count), kLeastDeviation * std::abs(mean))};
}

}  // namespace

StepGuard::StepGuard(const TrainPlan& plan)
    : on_nonfinite_(plan.on_nonfinite), on_spike_(plan.on_spike), sigmas_(plan.spike_sigmas) {}

StepGuard::Judgement StepGuard::judge_alone(double loss, double grad_norm) const {
    if (!std::isfinite(loss) || !std::isfinite(grad_norm)) {
        return {verdict_of(on_nonfinite_), false,
                "the loss is " + formatted("%.6g", loss) + " and the gradient norm " + formatted("%.6g", grad_norm)};
    }
    if (on_spike_ == "off" || losses_.size() < kLeastLosses) return {};
    const Statistics usual = statistics_of(losses_);
    const double sigmas = (loss - usual.mean) / usual.deviation;
    if (sigmas <= sigmas_) return {};
    return {verdict_of(on_spike_), true,
            "the loss jumped to " + formatted("%.6g", loss) + ", " + formatted("%.1f", sigmas) +
                " standard deviations above its mean of " + formatted("%.6g", usual.mean) + " over the last " +
                std::to_string(losses_.size()) + " steps (train.spike_sigmas)"};
}

StepGuard::Judgement StepGuard::judge(double loss, double grad_norm) {
    Judgement judgement = judge_alone(loss, grad_norm);
    skips_ = judgement.verdict == Verdict::Skip ? skips_ + 1 : 0;
    if (skips_ > kMostSkips) {
        judgement.verdict = Verdict::Stop;
        judgement.reason +=
            ", and so it was in the " + std::to_string(kMostSkips) + " steps before, which were skipped";
    }
    if (judgement.reason.empty() && on_spike_ != "off") {
        losses_.push_back(loss);
        if (losses_.size() > kMostLosses) losses_.pop_front();
    }
    return judgement;
}

std::string StepGuard::memory() const {
    std::string text = std::to_string(skips_);
    for (const double loss : losses_) text += ' ' + formatted("%a", loss);
    return text;
}

void StepGuard::restore(const std::string& memory) {
    std::istringstream words(memory);
    std::string word;
    std::deque<double> losses;
    int skips = -1;
    bool is_good = static_cast<bool>(words >> skips) && skips >= 0;
    while (is_good && words >> word) {
        char* end = nullptr;
        losses.push_back(std::strtod(word.c_str(), &end));
        is_good = *end == '\0' && std::isfinite(losses.back()) && losses.size() <= kMostLosses;
    }
    if (!is_good)
        throw Error(ErrorKind::BadData,
                    "the checkpoint's losses of earlier steps cannot be read; go on from another checkpoint");
    skips_ = skips;
    losses_ = std::move(losses);
}

}  // namespace vpp
