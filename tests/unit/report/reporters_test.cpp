#include "report/reporters.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"

namespace vpp {
namespace {

class Recorder : public Reporter {
  public:
    Recorder(std::string name, std::string& heard) : name_(std::move(name)), heard_(heard) {}
    void step(const StepEvent& event) override { note("step", event.step); }
    void evaluation(const EvalEvent& event) override { note("eval", event.step); }
    void saved(const SaveEvent& event) override { note("save", event.step); }
    void memory(const MemoryEvent& event) override { note("mem", event.step); }
    void pipeline(const PipelineEvent& event) override { note("pipe", event.step); }

  private:
    void note(const char* what, int64_t step) { heard_ += name_ + ':' + what + std::to_string(step) + ' '; }
    std::string name_;
    std::string& heard_;
};

TEST(Reporters, EveryEventReachesAllInOrder) {
    std::string heard;
    Reporters reporters;
    reporters.add(std::make_unique<Recorder>("a", heard));
    reporters.add(std::make_unique<Recorder>("b", heard));
    StepEvent step;
    step.step = 1;
    reporters.step(step);
    reporters.evaluation({2, 0, 0, 0});
    reporters.saved({3, "", 0, 0});
    reporters.memory({4, {}});
    PipelineEvent pipeline;
    pipeline.step = 5;
    reporters.pipeline(pipeline);
    EXPECT_EQ(heard, "a:step1 b:step1 a:eval2 b:eval2 a:save3 b:save3 a:mem4 b:mem4 a:pipe5 b:pipe5 ");
}

TEST(Reporters, NoneIsFineAndNullIsNot) {
    Reporters reporters;
    EXPECT_NO_THROW(reporters.step({}));
    EXPECT_THROW(reporters.add(nullptr), Error);
}

}  // namespace
}  // namespace vpp
