// Starts jobs of comm_fault under mpirun, breaks them, and looks at the text, the exit code and the time to the end.
//   comm_fault_test MPIRUN COMM_FAULT
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>

namespace {

std::string mpirun;
std::string program;

struct Outcome {
    int code = 0;        ///< kHung: mpirun had to be killed
    double seconds = 0;  ///< from the fault to the end of mpirun
    std::string text;
};

constexpr int kHung = 124;

/// A job that stands still fails its own test and leaves its words, instead of the whole program's without one.
std::string line_of(const std::string& scenario, int rank) {
    return "timeout -k 5 60 " + mpirun + " --oversubscribe -q -np 4 " + program + ' ' + scenario + ' ' +
           std::to_string(rank);
}

Outcome run_line(const std::string& job) {
    const std::string command = "( " + job + " ) 2>&1 </dev/null";
    Outcome outcome;
    FILE* pipe = popen(command.c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    std::array<char, 4096> line{};
    while (fgets(line.data(), line.size(), pipe) != nullptr) outcome.text += line.data();
    const int status = pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    EXPECT_NE(outcome.code, kHung) << job << '\n' << outcome.text;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const size_t mark = outcome.text.find("MARK ");
    EXPECT_NE(mark, std::string::npos) << outcome.text;
    if (mark == std::string::npos) return outcome;
    const double start_ms = std::stod(outcome.text.substr(mark + 5));
    outcome.seconds = std::chrono::duration<double>(now).count() - start_ms / 1000;
    return outcome;
}

Outcome run(const std::string& scenario, int rank) {
    return run_line(line_of(scenario, rank));
}

int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

bool has(const Outcome& outcome, const std::string& part) {
    return outcome.text.find(part) != std::string::npos;
}

constexpr double kDeadlineSeconds = 2;

/// The whole ring waits behind the stopped rank, so the rank that reports is seldom its direct peer.
TEST(CommFault, AStoppedRankIsNamedAndTheJobEnds) {
    for (int rank = 0; rank < 4; ++rank) {
        const Outcome outcome = run("stop", rank);
        EXPECT_EQ(outcome.code, 75) << outcome.text;
        EXPECT_TRUE(has(outcome, "; rank " + std::to_string(rank) + " is silent (stopped, ended or unreachable"))
            << outcome.text;
        EXPECT_TRUE(has(outcome, "of microbatch 2")) << outcome.text;
        EXPECT_EQ(count(outcome.text, "error: ") + count(outcome.text, "fatal: "), 1) << outcome.text;
        EXPECT_LT(outcome.seconds, kDeadlineSeconds + 2) << outcome.text;
        RecordProperty("seconds_from_stop_to_end_" + std::to_string(rank), std::to_string(outcome.seconds));
    }
}

TEST(CommFault, ARankThatComputesForEverIsNamed) {
    const Outcome outcome = run("sleep", 2);
    EXPECT_EQ(outcome.code, 75) << outcome.text;
    EXPECT_TRUE(has(outcome, "every rank answers")) << outcome.text;
    EXPECT_TRUE(has(outcome, "rank 2 (stage 2, F of microbatch 20) has computed for ")) << outcome.text;
}

TEST(CommFault, ASkippedSendShowsAsARingOfWaits) {
    const Outcome outcome = run("skip", 2);
    EXPECT_EQ(outcome.code, 75) << outcome.text;
    EXPECT_TRUE(has(outcome, "forward edge 4, microbatch 20")) << outcome.text;
    EXPECT_TRUE(has(outcome, "wait for one another")) << outcome.text;
}

TEST(CommFault, AnErrorOfOneRankKeepsItsCode) {
    const Outcome outcome = run("throw", 1);
    EXPECT_EQ(outcome.code, 79) << outcome.text;
    EXPECT_TRUE(has(outcome, "error: loss is nan")) << outcome.text;
    EXPECT_LT(outcome.seconds, 2) << outcome.text;
}

TEST(CommFault, AMessageThatIsTooLongEndsTheJobInsteadOfBeingCut) {
    const Outcome outcome = run("grow", 1);
    EXPECT_EQ(outcome.code, 76) << outcome.text;
    EXPECT_TRUE(has(outcome,
                    "error: rank 1 sent forward edge 4, microbatch 20 with a size that rank 2 does not expect "
                    "(got 200000 bytes, expected at most 100000)"))
        << outcome.text;
}

TEST(CommFault, ARankThatLeavesEarlyIsNamed) {
    const Outcome outcome = run("leave", 1);
    EXPECT_EQ(outcome.code, 75) << outcome.text;
    EXPECT_TRUE(has(outcome, "rank 1 (the end of the job) has waited ")) << outcome.text;
    EXPECT_TRUE(has(outcome, "wait for one another")) << outcome.text;
}

TEST(CommFault, AnEngineThatGoesOnBehindTheErrorIsEnded) {
    const Outcome outcome = run("swallow", 3);
    EXPECT_EQ(outcome.code, 75) << outcome.text;
    EXPECT_TRUE(has(outcome, "fatal: rank ")) << outcome.text;
    EXPECT_TRUE(has(outcome, "rank 3 is silent")) << outcome.text;
    EXPECT_LT(outcome.seconds, kDeadlineSeconds + 3) << outcome.text;
}

/// Whichever rank is missing; rank 0 speaks first, then rank 1, and the others unless mpirun has ended them.
TEST(CommFault, AStartUpThatDoesNotFinishIsSaid) {
    for (int rank : {0, 1}) {
        const Outcome outcome = run("start", rank);
        EXPECT_EQ(outcome.code, 75) << outcome.text;
        EXPECT_TRUE(has(outcome, "fatal: MPI's start-up did not finish within 2 s; see that every rank was started"))
            << outcome.text;
        int num_turns = 0;
        const std::string turn = "TURN of rank ";
        for (size_t at = outcome.text.find(turn); at != std::string::npos; at = outcome.text.find(turn, at + 1)) {
            int speaker = 0;
            double seconds = 0;
            ASSERT_EQ(std::sscanf(outcome.text.c_str() + at, "TURN of rank %d after %lf s", &speaker, &seconds), 2);
            EXPECT_GT(seconds, 2 + 0.4 * std::min(speaker, 2)) << outcome.text;
            ++num_turns;
        }
        EXPECT_GE(num_turns, 1) << outcome.text;
    }
}

TEST(CommFault, RanksEndWhenMpirunDoesNotAnswer) {
    const std::string look_at_ranks =
        "lives() { for process in /proc/[0-9]*/stat; do read -r number name state parent rest <$process; "
        "[ \"$parent\" = $mpirun ] && [ $state != Z ] && return; done 2>/dev/null; return 1; }; ";
    // The last of them waits until its deadline, then for mpirun.
    const std::string wait_for_ranks =
        " & mpirun=$!; lived=; for tenth in $(seq 300); do sleep 0.1; "
        "if lives; then lived=1; elif [ $lived ]; then break; fi; done; "
        "lives && echo LIVES; kill -CONT $mpirun; wait $mpirun";
    std::string line = line_of("deaf", 1);
    line.erase(0, line.find(mpirun));
    const Outcome outcome = run_line(look_at_ranks + line + wait_for_ranks);
    EXPECT_TRUE(has(outcome, "error: loss is nan")) << outcome.text;
    EXPECT_FALSE(has(outcome, "LIVES")) << outcome.text;
    EXPECT_NE(outcome.code, 0) << outcome.text;
}

TEST(CommFault, NothingHappensWhenNothingIsWrong) {
    EXPECT_EQ(std::system((line_of("none", 1) + " </dev/null").c_str()), 0);
}

}  // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (argc != 3) return 2;
    mpirun = argv[1];
    program = argv[2];
    return RUN_ALL_TESTS();
}
