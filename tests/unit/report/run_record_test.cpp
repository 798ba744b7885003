#include "report/run_record.hpp"

#include <cmath>

#include "base/error.hpp"
#include "report/json_lines.hpp"
#include "report/metrics.hpp"
#include "unit/report/scratch.hpp"
#include "unit/report/support.hpp"

namespace vpp {
namespace {

template <class Event>
void expect_same_readings(const Event& written, const Event& read_back) {
    const std::vector<Reading> unset = readings(Event{}), before = readings(written), after = readings(read_back);
    for (size_t i = 0; i < unset.size(); ++i) {
        EXPECT_NE(before[i].value, unset[i].value) << before[i].name.tag << " has no value of its own in this test";
        EXPECT_EQ(after[i].value, before[i].value) << before[i].name.tag << " is lost on the way";
    }
}

class RunRecords : public test::Scratch {
  protected:
    void put_metrics(const std::string& text) { put(folder_ / "metrics.jsonl", text); }
};

TEST_F(RunRecords, WhatWasWrittenIsReadBack) {
    StepEvent step = test::sample_step();
    step.flops = 1e6;
    const EvalEvent evaluation{10, 2.5, 512, 1.25, 0.75};
    const SaveEvent save{10, "folder", 4096, 0.5, 0.25};
    const MemoryEvent memory{10, {{30, 10, 9, 11}, {20, 5, 4, 6}}};
    put_metrics(to_json_line(step) + "\n" + to_json_line(evaluation) + "\n" + to_json_line(save) + "\n" +
                to_json_line(memory) + "\n");
    put(folder_ / "plan.toml", "[model]\nfile = \"a.pt\"\n");
    put(folder_ / "end.json", "{\"exit_code\":79,\"text\":\"nan\"}\n");
    const RecordedRun run = read_run(folder_);
    ASSERT_EQ(run.steps.size(), 1u);
    EXPECT_EQ(run.steps[0].loss, step.loss);
    EXPECT_EQ(run.steps[0].bubble_worst, step.bubble_worst);
    EXPECT_EQ(run.steps[0].worst_rank, 3);
    EXPECT_EQ(run.steps[0].loss_scale, std::nullopt);
    EXPECT_DOUBLE_EQ(run.steps[0].flops_per_second(), step.flops_per_second());
    EXPECT_TRUE(run.steps[0].microbatch_losses.empty());
    ASSERT_EQ(run.evaluations.size(), 1u);
    EXPECT_EQ(run.evaluations[0].loss, 2.5);
    EXPECT_EQ(run.evaluations[0].accuracy, 0.75);
    EXPECT_EQ(run.evaluations[0].perplexity, std::nullopt);
    ASSERT_EQ(run.saves.size(), 1u);
    EXPECT_EQ(run.saves[0].pause_seconds, 0.25);
    ASSERT_TRUE(run.memory && run.memory->ranks.size() == 2);
    EXPECT_EQ(run.memory->ranks[1].most_simulated_bytes, 6);
    EXPECT_EQ(run.plan_text, "[model]\nfile = \"a.pt\"\n");
    EXPECT_EQ(setting(run.settings, "model.file"), "a.pt");
    EXPECT_EQ(run.steps[0].bubble_idle, step.bubble_idle);
    EXPECT_EQ(run.end->exit_code, 79);
    EXPECT_TRUE(run.notes.empty());
}

TEST_F(RunRecords, EveryNumberOfTheMetricsIsReadBack) {
    StepEvent step = test::sample_step();
    step.skipped = true;
    step.loss_scale = 1024;
    step.step_ms = 64;
    step.flops = 6.4e7;  // its rate and back again without rounding
    const EvalEvent evaluation{10, 2.5, 512, 1.25, 0.75, 12.5};
    const SaveEvent save{10, "folder", 4096, 0.5, 0.25};
    const MemoryEvent memory{10, {{30, 10, 9, 11}}};
    put_metrics(to_json_line(step) + "\n" + to_json_line(evaluation) + "\n" + to_json_line(save) + "\n" +
                to_json_line(memory) + "\n");
    const RecordedRun run = read_run(folder_);
    expect_same_readings(step, run.steps.at(0));
    expect_same_readings(evaluation, run.evaluations.at(0));
    expect_same_readings(save, run.saves.at(0));
    expect_same_readings(memory, run.memory.value());
}

TEST_F(RunRecords, NumbersThatJsonLacksAreReadFromTheirNames) {
    put_metrics(R"({"event":"step","step":1,"loss":"nan","grad_norm":"inf"})"
                "\n"
                R"({"event":"step","step":2,"loss":"what"})"
                "\n");
    const RecordedRun run = read_run(folder_);
    EXPECT_TRUE(std::isnan(run.steps.at(0).loss));
    EXPECT_EQ(run.steps.at(0).grad_norm, HUGE_VAL);
    EXPECT_TRUE(std::isnan(run.steps.at(1).loss));
}

TEST_F(RunRecords, AnEndThatIsDamagedIsANote) {
    put_metrics("");
    put(folder_ / "end.json", "{");
    const RecordedRun run = read_run(folder_);
    EXPECT_FALSE(run.end);
    EXPECT_EQ(run.notes, (std::vector<std::string>{"end.json does not tell an exit_code and a text"}));
}

TEST_F(RunRecords, APlanThatIsNoTomlIsANote) {
    put_metrics("");
    put(folder_ / "plan.toml", "[model\n");
    const RecordedRun run = read_run(folder_);
    EXPECT_EQ(run.plan_text, "[model\n");
    EXPECT_TRUE(run.settings.empty());
    ASSERT_EQ(run.notes.size(), 1u);
    EXPECT_TRUE(run.notes[0].starts_with("plan.toml:1:")) << run.notes[0];
}

TEST_F(RunRecords, DamagedLinesAreCountedAndLeftOut) {
    put_metrics(
        "not json\n{\"event\":\"step\",\"step\":1}\n{\"event\":7,\"step\":1}\n[]\n{\"step\":-1}\n{\"event\":\"st");
    const RecordedRun run = read_run(folder_);
    EXPECT_EQ(run.steps.size(), 1u);
    ASSERT_EQ(run.notes.size(), 1u);
    EXPECT_EQ(run.notes[0], "metrics.jsonl has 5 lines that are no events");
}

TEST_F(RunRecords, StepsThatDoNotGoOnAndEventsWithoutANameAreDamaged) {
    put_metrics(
        "{\"event\":\"step\",\"step\":4,\"loss\":1}\n{\"step\":5,\"loss\":1}\n"
        "{\"event\":\"step\",\"step\":4,\"loss\":2}\n{\"event\":\"step\",\"step\":2,\"loss\":3}\n");
    const RecordedRun run = read_run(folder_);
    ASSERT_EQ(run.steps.size(), 1u);
    EXPECT_EQ(run.steps[0].loss, 1);
    ASSERT_EQ(run.notes.size(), 1u);
    EXPECT_EQ(run.notes[0], "metrics.jsonl has 3 lines that are no events");
}

TEST_F(RunRecords, AnEvaluationWithoutALossHasNone) {
    put_metrics("{\"event\":\"eval\",\"step\":1,\"loss\":1.5}\n{\"event\":\"eval\",\"step\":2}\n");
    const RecordedRun run = read_run(folder_);
    ASSERT_EQ(run.evaluations.size(), 2u);
    EXPECT_TRUE(std::isnan(run.evaluations[1].loss));
}

TEST_F(RunRecords, LinesAreWholeHoweverTheFileIsRead) {
    const std::string line = "{\"event\":\"eval\",\"step\":1,\"loss\":2}\n";
    std::string text;
    while (text.size() < size_t{3} << 20) text += line;
    const size_t num_lines = text.size() / line.size();
    put_metrics(text + std::string(kLongestLine + 7, 'x') + "\n" + line + line.substr(0, line.size() - 1));
    const RecordedRun run = read_run(folder_);
    EXPECT_EQ(run.evaluations.size(), num_lines + 2);
    ASSERT_EQ(run.notes.size(), 1u);
    EXPECT_EQ(run.notes[0], "metrics.jsonl has 1 line that is no event");
}

TEST_F(RunRecords, TheTimesOfStagesAreMeans) {
    int64_t step = 0;
    const auto line = [&](double forward, const std::string& more) {
        return R"({"event":"step","step":)" + std::to_string(++step) +
               R"(,"bubble_predicted":0.25,"stages":[{"rank":0,"forward_ms":)" + std::to_string(forward) +
               R"(,"backward_ms":4,"transfer_ms":1,"wait_ms":2})" + more + "]}\n";
    };
    const std::string first = line(1, ""), second = line(2, "");
    put_metrics(first + second + line(100, ",{}") + "{\"event\":\"step\",\"step\":4,\"stages\":[]}\n");
    const RecordedRun run = read_run(folder_);
    ASSERT_EQ(run.stages.size(), 1u);
    EXPECT_EQ(run.stages[0].forward_ms, 1.5);
    EXPECT_EQ(run.stages[0].total_ms(), 8.5);
    ASSERT_EQ(run.steps.size(), 4u);
    EXPECT_EQ(run.steps[0].bubble_predicted, 0.25);
    EXPECT_EQ(run.steps[3].bubble_predicted, std::nullopt);
}

/// Of 9 steps; each stage of them takes as long.
std::string line_of_step(int step, const std::vector<int>& ranks, double forward) {
    std::string stages;
    for (const int rank : ranks) {
        stages += std::string(stages.empty() ? "" : ",") + "{\"rank\":" + std::to_string(rank) +
                  ",\"forward_ms\":" + std::to_string(forward) + "}";
    }
    return "{\"event\":\"step\",\"step\":" + std::to_string(step) + ",\"total_steps\":9,\"stages\":[" + stages + "]}\n";
}

TEST_F(RunRecords, TheNewestLayoutIsToldWithoutItsFirstSteps) {
    const auto line = line_of_step;
    std::string text = line(1, {0, 1}, 100) + line(2, {0, 1}, 100) + line(3, {0, 1}, 1) + line(4, {0, 1}, 2);
    put_metrics(text);
    EXPECT_EQ(read_run(folder_).stages.at(1).forward_ms, 1.5);
    text += line(5, {0, 1, 2}, 100) + line(6, {0, 1, 2}, 100);
    put_metrics(text);
    EXPECT_TRUE(read_run(folder_).stages.empty());
    text += line(7, {0, 1, 2}, 4);
    put_metrics(text);
    ASSERT_EQ(read_run(folder_).stages.size(), 3u);
    EXPECT_EQ(read_run(folder_).stages[2].forward_ms, 4);
    text += line(8, {0, 1, 0}, 5) + line(9, {0, 1, 0}, 7);
    put_metrics(text);
    EXPECT_EQ(read_run(folder_).stages.at(2).forward_ms, 6) << "it has no others";
    EXPECT_EQ(read_run(folder_).stages[2].rank, 0);
}

TEST_F(RunRecords, TheFirstStepsOfEveryStartAreLeftOut) {
    const auto lines = [](int first, std::vector<double> forwards) {
        std::string text;
        for (const double forward : forwards) text += line_of_step(first++, {0, 1}, forward);
        return text;
    };
    const auto memory = [](int step) { return to_json_line(MemoryEvent{step, {}}) + "\n"; };
    const std::string begun = lines(1, {100, 100}) + memory(2) + lines(3, {1, 2});
    put_metrics(begun + lines(5, {100, 100}) + memory(6));
    EXPECT_EQ(read_run(folder_).stages.at(1).forward_ms, 1.5) << "a start of the same layout";
    put_metrics(begun + lines(5, {100, 100}) + memory(6) + lines(7, {6}) + lines(8, {100, 100}) + memory(9));
    EXPECT_EQ(read_run(folder_).stages.at(1).forward_ms, 3) << "and one more, which ends the training";
    put_metrics(lines(1, {100}) + lines(2, {100, 100}) + memory(3) + lines(4, {5, 6}));
    EXPECT_EQ(read_run(folder_).stages.at(1).forward_ms, 5.5) << "right behind the first step";
    put_metrics(lines(1, {100, 100}) + memory(2) + lines(3, {1}) + lines(4, {100}));
    EXPECT_EQ(read_run(folder_).stages.at(1).forward_ms, 50.5) << "whose memory nobody knows yet";
    put_metrics(lines(9, {7}) + memory(9));
    EXPECT_EQ(read_run(folder_).stages.at(1).forward_ms, 7) << "there are no others";
}

TEST_F(RunRecords, HugeNumbersDoNoHarm) {
    put_metrics(R"({"event":"step","step":18446744073709551615,"memory_bytes":1e300,"worst_rank":1e300,"step_ms":-1})"
                "\n");
    const RecordedRun run = read_run(folder_);
    EXPECT_EQ(run.steps.at(0).memory_bytes, 0);
    EXPECT_EQ(run.steps.at(0).worst_rank, -1);
}

TEST_F(RunRecords, AFolderWithoutMetricsIsNoRun) {
    try {
        read_run(folder_);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::MissingInput);
        EXPECT_NE(std::string(error.what()).find("name a folder that vpp train wrote"), std::string::npos);
    }
}

TEST_F(RunRecords, ATimelineIsReadOrANote) {
    put_metrics("");
    std::filesystem::create_directory(folder_ / "profile");
    put(folder_ / "profile" / "timeline.json",
        R"({"step": 3, "actions": [{"rank": 1, "kind": "F", "stage": 2, "microbatch": 3, )"
        R"("begin_ms": 500, "end_ms": 750}]})");
    const RecordedRun run = read_run(folder_);
    ASSERT_EQ(run.timeline.size(), 1u);
    EXPECT_EQ(run.timeline[0].rank, 1);
    EXPECT_EQ(run.timeline[0].stage, 2);
    EXPECT_EQ(run.timeline[0].end_seconds, 0.75);
    const std::vector<TimedAction> by_card = timeline_from_json(
        R"({"actions": [{"rank": 0, "kind": "F", "begin_ms": 1, "end_ms": 2, "card_begin_ms": 3, "card_end_ms": 5}]})");
    EXPECT_EQ(by_card.at(0).start_seconds, 0.003);
    EXPECT_EQ(by_card.at(0).end_seconds, 0.005);
    for (const char* bad : {"[]", "{", R"({"actions": 1})", R"({"actions": [1]})",
                            R"({"actions": [{"rank": 0, "kind": "F", "begin_ms": 2, "end_ms": 1}]})",
                            R"({"actions": [{"rank": 1e9, "kind": "F", "begin_ms": 1, "end_ms": 2}]})"}) {
        put(folder_ / "profile" / "timeline.json", bad);
        const RecordedRun damaged = read_run(folder_);
        EXPECT_TRUE(damaged.timeline.empty());
        EXPECT_EQ(damaged.notes.size(), 1u) << bad;
    }
}

}  // namespace
}  // namespace vpp
