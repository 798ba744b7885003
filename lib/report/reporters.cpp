#include "report/reporters.hpp"

#include <utility>

#include "base/error.hpp"

namespace vpp {

void Reporters::add(std::unique_ptr<Reporter> reporter) {
    check(reporter != nullptr, "a reporter is added");
    reporters_.push_back(std::move(reporter));
}

void Reporters::step(const StepEvent& event) {
    for (const auto& reporter : reporters_) reporter->step(event);
}

void Reporters::evaluation(const EvalEvent& event) {
    for (const auto& reporter : reporters_) reporter->evaluation(event);
}

void Reporters::memory(const MemoryEvent& event) {
    for (const auto& reporter : reporters_) reporter->memory(event);
}

void Reporters::pipeline(const PipelineEvent& event) {
    for (const auto& reporter : reporters_) reporter->pipeline(event);
}

void Reporters::saved(const SaveEvent& event) {
    for (const auto& reporter : reporters_) reporter->saved(event);
}

}  // namespace vpp
