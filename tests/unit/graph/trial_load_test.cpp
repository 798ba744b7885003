// Hostile and broken files cost a child, never this process.
#include "graph/trial_load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

const TrialLimits kShort{.cpu_seconds = 1, .wall = std::chrono::seconds(90)};

/// A model whose state is set by code when it is loaded.
ModuleSpec with_state(const std::string& body) {
    ModuleSpec spec{"Stateful", R"JIT(
def forward(self, x):
    return x
def __getstate__(self):
    return (1, self.training)
def __setstate__(self, state: Tuple[int, bool]):
    self.training = state[1]
)JIT" + body};
    return spec;
}

std::string digest_of(const std::string& path) {
    return Archive(path).sha256();
}

TEST(TrialLoad, AGoodFilePasses) {
    EXPECT_NO_THROW(trial_load({{save(linear(2, 2)), std::nullopt}}, {}));
}

TEST(TrialLoad, ErrorsComeBackAsTheyAre) {
    const std::string broken = save(linear(2, 2));
    std::ofstream(broken, std::ios::trunc) << "no zip";
    EXPECT_THAT(refusal(ErrorKind::BadData,
                        [&] {
                            trial_load({{broken, std::nullopt}}, {});
                        }),
                HasSubstr(broken + ": this is not a TorchScript file"));
    const SourcePosition a{"plan.toml", 10, 8, ""}, b{"plan.toml", 12, 8, ""};
    const std::string text = refusal(ErrorKind::MissingInput, [&] {
        trial_load({{"/nonexistent/a.pt", a}, {save(linear(2, 2)), std::nullopt}, {"/nonexistent/b.pt", b}}, {});
    });
    EXPECT_THAT(text, HasSubstr("plan.toml:10:8: cannot open the model file /nonexistent/a.pt"));
    EXPECT_THAT(text, HasSubstr("plan.toml:12:8: cannot open the model file /nonexistent/b.pt"));
}

TEST(TrialLoad, CodeThatRunsWhileLoadingNeedsTrust) {
    const std::string path = save(with_state(""));
    EXPECT_THAT(refusal(ErrorKind::Refused,
                        [&] {
                            trial_load({{path, std::nullopt}}, {});
                        }),
                HasSubstr("__setstate__, which runs while the file is loaded"));
    EXPECT_NO_THROW(trial_load({{path, std::nullopt}}, {digest_of(path)}));
}

TEST(TrialLoad, AnEndlessLoopIsStopped) {
    const std::string path = save(with_state("    while True:\n        x = 1\n"));
    EXPECT_THAT(refusal(ErrorKind::Refused,
                        [&] {
                            trial_load({{path, std::nullopt}}, {digest_of(path)}, kShort);
                        }),
                HasSubstr(path + ": loading it does not end (stopped after 1 s of processor time)"));
    const TrialLimits no_time{.cpu_seconds = 60, .wall = std::chrono::seconds(0)};
    EXPECT_THAT(refusal(ErrorKind::Refused,
                        [&] {
                            trial_load({{path, std::nullopt}}, {digest_of(path)}, no_time);
                        }),
                HasSubstr("stopped after 0 s)"));
}

TEST(TrialLoad, AnEndThatCannotBeLearntIsNoSuccess) {
    const std::string path = save(linear(2, 2));
    const pid_t tester = fork();
    if (tester == 0) {
        signal(SIGCHLD, SIG_IGN);
        const std::string text = refusal(ErrorKind::Io, [&] { trial_load({{path, std::nullopt}}, {}); });
        _exit(text == "cannot learn how the process ended that was started to try the model file: No child processes"
                  ? 0
                  : 1);
    }
    int status = 0;
    waitpid(tester, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST(TrialLoad, MemoryIsLimited) {
    const TrialLimits small{.memory_bytes = uint64_t{1} << 30};
    const auto of_floats = [](const std::string& count) {
        return save(with_state("    self.training = bool(torch.sum(torch.zeros([" + count + "])) == 0)\n")).string();
    };
    const std::string large = of_floats("1 << 32"), ordinary = of_floats("1 << 10");
    EXPECT_THAT(refusal(ErrorKind::BadData,
                        [&] {
                            trial_load({{large, std::nullopt}}, {digest_of(large)}, small);
                        }),
                HasSubstr(large));
    EXPECT_NO_THROW(trial_load({{ordinary, std::nullopt}}, {digest_of(ordinary)}, small));
}

TEST(TrialLoad, FilesOfAPlanComeOnceWithTheirPlaces) {
    Plan plan;
    plan.model.file = "m.pt";
    plan.pipeline.stages = {{"a", "s.pt", {}, {}, {}}, {"b", "", {}, {}, {}}, {"c", "s.pt", {}, {}, {}}};
    plan.positions["pipeline.stage[0].file"] = {"plan.toml", 10, 8, ""};
    const std::vector<TrialFile> files = trial_files(plan);
    ASSERT_EQ(files.size(), 2U);
    EXPECT_EQ(files[0].path, "m.pt");
    EXPECT_EQ(files[1].path, "s.pt");
    EXPECT_EQ(files[1].position->line, 10);
    plan.model.eval_file = "e.pt";
    plan.pipeline.stages[2].eval_file = "s_eval.pt";
    plan.positions["model.eval_file"] = {"plan.toml", 3, 8, ""};
    const std::vector<TrialFile> with_twins = trial_files(plan);
    ASSERT_EQ(with_twins.size(), 4U);
    EXPECT_EQ(with_twins[1].path, "e.pt");
    EXPECT_EQ(with_twins[1].position->line, 3);
    EXPECT_EQ(with_twins[3].path, "s_eval.pt");
}

}  // namespace
}  // namespace vpp
