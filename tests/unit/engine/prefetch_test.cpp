#include "engine/prefetch.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <mutex>
#include <random>
#include <thread>

#include "base/error.hpp"
#include "unit/data/support.hpp"

namespace vpp::test {
namespace {

const std::vector<InputNeed> kOrder{{0, 1, 0, 0}, {0, 1, 1, 0}, {0, 0, 0, 0}, {0, 0, 1, 0}, {0, 0, 1, 1}};

InputNeed need_of(int64_t step, size_t index) {
    InputNeed need = kOrder[index];
    need.step = step;
    return need;
}

constexpr double kDeadlineSeconds = 60;

/// Bytes that no other need has.
std::vector<std::byte> bytes_of(const InputNeed& need) {
    std::vector<std::byte> bytes;
    for (int64_t number : {need.step, int64_t{need.replica}, int64_t{need.microbatch}, int64_t{need.input}}) {
        bytes.push_back(static_cast<std::byte>(number));
    }
    return bytes;
}

/// Reads that are counted; each takes a while.
class SlowReads {
  public:
    std::vector<std::byte> operator()(const InputNeed& need) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        {
            const std::lock_guard lock(mutex_);
            needs_.push_back(need);
        }
        return bytes_of(need);
    }
    size_t count() {
        const std::lock_guard lock(mutex_);
        return needs_.size();
    }
    std::vector<InputNeed> needs() {
        const std::lock_guard lock(mutex_);
        return needs_;
    }
    /// Waits until there are so many, then a little for one too many.
    size_t settled(size_t wanted) {
        for (int i = 0; i < 5000 && count() < wanted; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return count();
    }

  private:
    std::mutex mutex_;
    std::vector<InputNeed> needs_;
};

TEST(Prefetch, readsAheadInOrderAndOverTheEndOfAStep) {
    SlowReads reads;
    Prefetch prefetch(kOrder, 100, std::ref(reads), 3);
    EXPECT_EQ(reads.settled(0), 0u) << "nothing before the first one is asked for";
    EXPECT_EQ(prefetch.take(need_of(7, 3), kDeadlineSeconds), bytes_of(need_of(7, 3)));
    EXPECT_EQ(reads.settled(4), 4u) << "three ahead";
    EXPECT_EQ(reads.needs(), (std::vector{need_of(7, 3), need_of(7, 4), need_of(8, 0), need_of(8, 1)}));
    EXPECT_EQ(prefetch.take(need_of(7, 4), kDeadlineSeconds), bytes_of(need_of(7, 4)));
    EXPECT_EQ(reads.settled(5), 5u) << "another one for each that is taken";
}

TEST(Prefetch, readsNothingBehindTheLastStep) {
    SlowReads reads;
    Prefetch prefetch(kOrder, 2, std::ref(reads), 50);
    prefetch.take(need_of(1, 2), kDeadlineSeconds);
    EXPECT_EQ(reads.settled(3), 3u);
    prefetch.take(need_of(5, 3), kDeadlineSeconds);
    EXPECT_EQ(reads.settled(5), 5u) << "of a step behind it what that step needs";
    prefetch.take(need_of(5, 4), kDeadlineSeconds);
    EXPECT_EQ(reads.settled(5), 5u) << "and nothing of the next one";
}

TEST(Prefetch, givesWhatIsAskedForInWhateverOrder) {
    SlowReads reads;
    Prefetch prefetch(kOrder, 20, std::ref(reads), 4);
    std::mt19937 random(1);
    InputNeed need = need_of(0, 0);
    for (int i = 0; i < 300; ++i) {
        const size_t index = random() % kOrder.size();
        const auto step = static_cast<int64_t>(random() % 22);
        for (size_t run = 0; run <= random() % 4 && index + run < kOrder.size(); ++run) {
            need = need_of(step, index + run);
            ASSERT_EQ(prefetch.take(need, kDeadlineSeconds), bytes_of(need)) << i;
            if (random() % 4 > 0) continue;
            ASSERT_EQ(prefetch.take(need, kDeadlineSeconds), bytes_of(need)) << "once more, " << i;
        }
    }
}

TEST(Prefetch, throwsWhereTheNeedIsAskedForAndNowhereElse) {
    std::atomic<int> failures = 0;
    const auto read = [&](const InputNeed& need) {
        if (need == need_of(1, 1)) {
            ++failures;
            throw Error(ErrorKind::BadData, "a.bin, sample 3: bad");
        }
        return bytes_of(need);
    };
    Prefetch prefetch(kOrder, 5, read, 4);
    for (size_t i = 0; i < kOrder.size(); ++i) prefetch.take(need_of(0, i), kDeadlineSeconds);
    EXPECT_EQ(prefetch.take(need_of(1, 0), kDeadlineSeconds), bytes_of(need_of(1, 0)));
    for (int again = 0; again < 2; ++again) {
        try {
            prefetch.take(need_of(1, 1), kDeadlineSeconds);
            FAIL() << "it is bad";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::BadData);
            EXPECT_STREQ(error.what(), "a.bin, sample 3: bad");
        }
    }
    EXPECT_EQ(failures, 2);
    EXPECT_EQ(prefetch.take(need_of(1, 2), kDeadlineSeconds), bytes_of(need_of(1, 2)))
        << "others are as good as before";
    const auto is_unknown = [&] { prefetch.take({0, 9, 0, 0}, kDeadlineSeconds); };
    EXPECT_THROW(is_unknown(), Error);
}

TEST(Prefetch, anInputThatIsTakenTwiceIsReadTwiceAndDropsNothing) {
    const std::vector<InputNeed> twice{{0, 0, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 0}, {0, 0, 1, 0}};
    SlowReads reads;
    Prefetch prefetch(twice, 3, std::ref(reads), 2);
    for (int64_t step = 0; step < 3; ++step) {
        for (InputNeed need : twice) {
            need.step = step;
            EXPECT_EQ(prefetch.take(need, kDeadlineSeconds), bytes_of(need));
        }
    }
    EXPECT_EQ(reads.settled(12), 12u);
}

TEST(Prefetch, readsInTheCallersThreadWithNothingAhead) {
    std::vector<std::thread::id> threads;
    Prefetch prefetch(
        kOrder, 5,
        [&](const InputNeed& need) {
            threads.push_back(std::this_thread::get_id());
            return bytes_of(need);
        },
        0);
    for (size_t i : {0u, 1u, 3u}) EXPECT_EQ(prefetch.take(need_of(2, i), kDeadlineSeconds), bytes_of(need_of(2, i)));
    EXPECT_EQ(threads, std::vector(3, std::this_thread::get_id()));
    EXPECT_EQ(prefetch.take_spans().size(), 3u);
}

TEST(Prefetch, tellsWhatWasReadWhen) {
    SlowReads reads;
    Prefetch prefetch(kOrder, 1, std::ref(reads), 2);
    EXPECT_TRUE(prefetch.take_spans().empty());
    std::vector<ReadSpan> spans;
    for (size_t i = 0; i < kOrder.size(); ++i) {
        prefetch.take(need_of(0, i), kDeadlineSeconds);
        for (const ReadSpan& span : prefetch.take_spans()) spans.push_back(span);
    }
    ASSERT_EQ(spans.size(), kOrder.size());
    for (size_t i = 0; i < spans.size(); ++i) {
        EXPECT_EQ(spans[i].microbatch, kOrder[i].microbatch);
        EXPECT_EQ(spans[i].input, kOrder[i].input);
        EXPECT_GE(spans[i].end - spans[i].begin, 1'000'000);
        if (i > 0) {
            EXPECT_GE(spans[i].begin, spans[i - 1].end) << "one thread";
        }
    }
}

TEST(Prefetch, aReadThatDoesNotEndIsSaidAndHoldsNobodyUp) {
    std::promise<void> disk;
    std::atomic<bool> is_through = false;
    // What the thread may still use lives as long as its reader does.
    const auto answers = std::make_shared<std::shared_future<void>>(disk.get_future());
    {
        Prefetch prefetch(kOrder, 5,
                          [answers, &is_through](const InputNeed& need) {
                              if (need.step == 1) answers->wait(), is_through = true;
                              return bytes_of(need);
                          },
                          20, {"validation data", "group"});
        for (size_t i = 0; i < kOrder.size(); ++i) prefetch.take(need_of(0, i), kDeadlineSeconds);
        EXPECT_HAS(error_of(ErrorKind::RankLost, [&] { prefetch.take(need_of(1, 0), 0.1); }),
                   "the validation data do not answer: this rank has waited 0.1 s for a read of group 2. "
                   "Mend the disk, then start the command again");
    }
    EXPECT_FALSE(is_through);
    disk.set_value();
    for (int i = 0; i < 5000 && !is_through; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(is_through);
}

TEST(Prefetch, endsWithWhatWasReadUntaken) {
    for (int i = 0; i < 50; ++i) {
        SlowReads reads;
        Prefetch prefetch(kOrder, 100, std::ref(reads), 4);
        if (i % 2 == 1) prefetch.take(need_of(i, 2), kDeadlineSeconds);
    }
}

TEST(Prefetch, getsNoSignals) {
    sigset_t mask, own;
    pthread_sigmask(SIG_SETMASK, nullptr, &own);
    Prefetch prefetch(
        kOrder, 1,
        [&](const InputNeed& need) {
            pthread_sigmask(SIG_SETMASK, nullptr, &mask);
            return bytes_of(need);
        },
        1);
    prefetch.take(need_of(0, 4), kDeadlineSeconds);
    for (int signal : {SIGUSR1, SIGTERM, SIGINT, SIGHUP}) {
        EXPECT_TRUE(sigismember(&mask, signal)) << signal;
        EXPECT_FALSE(sigismember(&own, signal)) << signal;
    }
    EXPECT_FALSE(sigismember(&mask, SIGBUS));
}

}  // namespace
}  // namespace vpp::test
