#include "launch/child.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "base/error.hpp"

namespace vpp {
namespace {

using std::chrono::milliseconds;

/// What a job did, told through an exit code: the test itself must not be hit by the signals.
int in_a_process(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGHUP, SIG_DFL);  // under nohup it is ignored
        _exit(body());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

std::vector<std::string> shell(const std::string& script) {
    return {"sh", "-c", script};
}

/// A job that sends signals to whoever runs it, and says in its code what it got.
constexpr const char* kSaves = "trap 'exit 85' USR1; trap 'exit 15' TERM; trap 'exit 2' INT; ";

TEST(Child, AnEndThatCannotBeLearntIsAnError) {
    const auto text_of = [](const std::function<void()>& body) -> std::string {
        try {
            body();
        } catch (const Error& error) {
            return error.kind() == ErrorKind::Io ? error.what() : "";
        }
        return "";
    };
    const std::string wanted = "cannot learn how a program ended: No child processes";
    EXPECT_EQ(in_a_process([&] {
                  signal(SIGCHLD, SIG_IGN);
                  const std::string run = text_of([] { StopSignals().run(shell("exit 7"), StopManner::Save); });
                  const std::string words = text_of([] { listen_to(shell("exit 7"), milliseconds(10000)); });
                  return (run == wanted ? 1 : 0) + (words == wanted ? 2 : 0);
              }),
              3);
}

TEST(Child, AJobGoesOnWhenNobodyReadsIt) {
    const auto run = [](const std::string& script) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return 0;
        signal(SIGPIPE, SIG_IGN);
        close(ends[0]);
        dup2(ends[1], STDOUT_FILENO);
        const ChildEnd end = StopSignals().run(shell(script), StopManner::Save);
        return end.is_output_lost ? end.code : 0;
    };
    EXPECT_EQ(in_a_process([&] { return run("seq 100000 && exit 7"); }), 7);
    EXPECT_EQ(in_a_process([&] { return run("echo >&2; exit 7"); }), 0) << "nothing was lost";
}

TEST(Child, ItIsLookedAtHoweverMuchItPrints) {
    EXPECT_EQ(in_a_process([] {
                  dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
                  const ChildEnd end = StopSignals().run(shell("sleep 0.1 & exec yes"), StopManner::Save,
                                                         {.dead_child = std::chrono::seconds(1)});
                  return end.hang == Hang::DeadChild ? end.code : 1;
              }),
              137);
}

TEST(Child, GivesTheCode) {
    EXPECT_EQ(in_a_process([] { return StopSignals().run(shell("exit 7"), StopManner::Save).code; }), 7);
    EXPECT_EQ(in_a_process([] { return StopSignals().run(shell("kill -9 $$"), StopManner::Save).code; }), 137);
}

TEST(Child, SignalsThatAskForAnEndBecomeUsr1) {
    for (const char* name : {"INT", "TERM", "HUP", "USR1"}) {
        const std::string script = std::string(kSaves) + "kill -" + name + " $PPID; sleep 10 & wait; exit 1";
        EXPECT_EQ(in_a_process([&] {
                      const ChildEnd end = StopSignals().run(shell(script), StopManner::Save);
                      return end.stop_asked && !end.ended_at_once ? end.code : 0;
                  }),
                  85)
            << name;
    }
}

TEST(Child, ASecondInterruptEndsIt) {
    // The second one follows when the first has been heard.
    const std::string script =
        std::string("trap 'trap : USR1; kill -INT $PPID' USR1; trap 'exit 15' TERM; kill -INT $PPID; ") +
        "while :; do sleep 0.05; done";
    EXPECT_EQ(in_a_process([&] {
                  const ChildEnd end = StopSignals().run(shell(script), StopManner::Save);
                  return end.ended_at_once ? end.code : 0;
              }),
              15);
}

TEST(Child, OneThatIsBlindToItsDeadChildrenIsKilled) {
    // exec: sleep has a child that it never waits for.
    const auto run = [](const std::string& script) {
        const ChildEnd end =
            StopSignals().run(shell(script), StopManner::Save, {.dead_child = std::chrono::seconds(1)});
        return end.hang == Hang::DeadChild ? end.code : 1;
    };
    EXPECT_EQ(in_a_process([&] { return run("sleep 0.1 & exec sleep 30"); }), 137);
    EXPECT_EQ(in_a_process([&] { return run("sleep 3 & exec sleep 2.5"); }), 1);
}

TEST(Child, OneThatWaitsForOthersWhenItsRanksAreGoneIsKilled) {
    const auto run = [](const std::string& script) {
        const ChildEnd end =
            StopSignals().run(shell(script), StopManner::Save, {.other_hosts = std::chrono::seconds(1)});
        return end.hang == Hang::OtherHosts ? end.code : 1;
    };
    const std::string rank = "OMPI_COMM_WORLD_RANK=0 sleep ";
    EXPECT_EQ(in_a_process([&] { return run(rank + "2 & wait; sleep 30"); }), 137);
    EXPECT_EQ(in_a_process([&] { return run(rank + "2.5 & wait"); }), 1) << "it has a rank";
    EXPECT_EQ(in_a_process([&] { return run("sleep 2.5"); }), 1) << "it never had one";
}

TEST(Child, OneThatWaitsForItsReaderIsNotKilled) {
    // It prints more than pipes hold behind the end of its rank, and is read 3 s later.
    const std::string script = "OMPI_COMM_WORLD_RANK=0 sleep 1 & wait; seq 100000; exit 7";
    EXPECT_EQ(in_a_process([&] {
                  int ends[2];
                  if (pipe2(ends, O_CLOEXEC) != 0) return 0;
                  const pid_t reader = fork();
                  if (reader == 0) {
                      dup2(ends[0], STDIN_FILENO);
                      close(ends[0]);
                      close(ends[1]);
                      execlp("sh", "sh", "-c", "sleep 4; cat >/dev/null", nullptr);
                  }
                  dup2(ends[1], STDOUT_FILENO);
                  const ChildEnd end = StopSignals().run(
                      shell(script), StopManner::Save,
                      {.dead_child = std::chrono::seconds(1), .other_hosts = std::chrono::seconds(1)});
                  return end.hang == Hang::No && !end.is_output_lost ? end.code : 1;
              }),
              7);
}

TEST(Child, ARankThatIsStoppedWhenTheOthersHaveLeftIsKilled) {
    const auto run = [](const std::string& script) {
        const ChildEnd end =
            StopSignals().run(shell(script), StopManner::Save, {.left_behind = std::chrono::seconds(1)});
        return end.hang == Hang::LeftBehind ? end.code : 1;
    };
    const std::string rank = "OMPI_COMM_WORLD_RANK=0 sleep ";
    const std::string until_it_runs = "until grep -q _RANK= /proc/$!/environ; do sleep 0.1; done; ";
    const std::string stopped = rank + "30 & " + until_it_runs + "kill -STOP $!; ";
    EXPECT_EQ(in_a_process([&] { return run(stopped + rank + "1.5 & wait; exit 9"); }), 9);
    EXPECT_EQ(in_a_process([&] { return run(stopped + "sleep 2; kill -KILL $!"); }), 1)
        << "it is alone, as a debugger may want";
    EXPECT_EQ(in_a_process([&] { return run(rank + "2.5 & " + rank + "1 & wait"); }), 1) << "it is not stopped";
}

TEST(Child, WhatSavesNothingIsEndedByTheFirst) {
    const std::string script = std::string(kSaves) + "kill -INT $PPID; while :; do sleep 0.05; done";
    EXPECT_EQ(in_a_process([&] {
                  const ChildEnd end = StopSignals().run(shell(script), StopManner::End);
                  return end.ended_at_once ? end.code : 0;
              }),
              15);
}

TEST(Child, HangupStaysIgnoredUnderNohup) {
    EXPECT_EQ(in_a_process([] {
                  signal(SIGHUP, SIG_IGN);
                  const ChildEnd end = StopSignals().run(shell("kill -HUP $PPID; sleep 0.1; exit 5"), StopManner::Save);
                  return end.stop_asked ? 1 : end.code;
              }),
              5);
}

TEST(Child, ASignalThatCameBetweenTwoStartsIsHeard) {
    EXPECT_EQ(in_a_process([] {
                  StopSignals signals;
                  const bool before = signals.is_stop_asked_within(milliseconds(20));
                  kill(getpid(), SIGTERM);
                  return !before && signals.is_stop_asked_within(milliseconds(20)) ? 3 : 0;
              }),
              3);
}

TEST(Child, LateSignalsDoNotEndTheLauncher) {
    EXPECT_EQ(in_a_process([] {
                  {
                      StopSignals signals;
                      kill(getpid(), SIGINT);
                  }
                  return 4;
              }),
              4);
}

TEST(Child, HasNoInputAndAProcessGroupOfItsOwn) {
    EXPECT_EQ(in_a_process([] {
                  const auto end = StopSignals().run(shell("read line && exit 1; read -r pid name state parent group "
                                                           "rest < /proc/$$/stat; [ $group = $$ ] || exit 2; exit 6"),
                                                     StopManner::Save);
                  return end.code;
              }),
              6);
}

TEST(Child, AProgramThatIsNotThereIsNamed) {
    StopSignals signals;
    try {
        signals.run({"/nowhere/mpirun"}, StopManner::Save);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Mesh);
        EXPECT_STREQ(error.what(),
                     "cannot start /nowhere/mpirun: No such file or directory; install Open MPI, or put its folder "
                     "into PATH");
    }
}

TEST(Child, AShortProgramEndsWithWhoeverListensToIt) {
    const auto path = std::filesystem::temp_directory_path() / ("vpp-words-" + std::to_string(getpid()));
    const pid_t listener = fork();
    if (listener == 0) {
        listen_to(shell("trap 'rm " + path.string() + "; exit' TERM; touch " + path.string() +
                        "; while :; do sleep 0.05; done"),
                  milliseconds(60000));
        _exit(0);
    }
    while (!std::filesystem::exists(path)) usleep(10000);
    kill(listener, SIGKILL);
    waitpid(listener, nullptr, 0);
    for (int i = 0; i < 1000 && std::filesystem::exists(path); ++i) usleep(10000);
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Child, WordsOfBothStreams) {
    const ChildWords heard = listen_to(shell("echo out; echo err >&2; exit 3"), milliseconds(10000));
    EXPECT_EQ(heard.code, 3);
    EXPECT_EQ(heard.text, "out\nerr\n");
    EXPECT_EQ(listen_to({"/nowhere/mpirun"}, milliseconds(10000)).code, 127);
}

TEST(Child, WordsHaveALimitOfTimeAndLength) {
    const ChildWords slow = listen_to(shell("echo begun; sleep 30"), milliseconds(2000));
    EXPECT_TRUE(slow.timed_out);
    EXPECT_EQ(slow.text, "begun\n");
    const ChildWords endless = listen_to(shell("head -c 1000000 /dev/zero"), milliseconds(10000));
    EXPECT_EQ(endless.code, 0);
    EXPECT_LT(endless.text.size(), 100000U);
}

}  // namespace
}  // namespace vpp
