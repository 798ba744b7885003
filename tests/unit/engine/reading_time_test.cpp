#include "engine/reading_time.hpp"

#include "checkpoint/survey.hpp"
#include "comm/passing_transport.hpp"
#include "engine/checkpointing.hpp"
#include "engine/initial_weights.hpp"
#include "engine/saver.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

constexpr double kOwnSeconds = 7;

TEST(ReadingTime, AllWaitForTheRankThatReadsMost) {
    InProcessOptions options;
    options.num_ranks = 3;
    InProcessWorld(options).run([](Transport& transport) {
        transport.set_deadline(kOwnSeconds);
        {
            ReadingTime time(transport, transport.rank() == 1 ? uint64_t{5'000'000'000} : 20);
            EXPECT_EQ(transport.deadline_seconds(), reading_seconds(5'000'000'000));
            EXPECT_EQ(transport.deadline_seconds(), 800);
            const ReadingTime inner(transport, 0);
            EXPECT_EQ(transport.deadline_seconds(), 800) << "never shorter";
            time.wait_for_all();
        }
        EXPECT_EQ(transport.deadline_seconds(), kOwnSeconds);
    });
}

/// Keeps the longest deadline.
class Deadlines : public PassingTransport {
  public:
    explicit Deadlines(Transport& inner) : PassingTransport(inner) {}
    void set_deadline(double seconds) override {
        most_seconds = std::max(most_seconds, seconds);
        PassingTransport::set_deadline(seconds);
    }
    double most_seconds = 0;
};

/// The longest deadline while the engine gets its weights.
double most_seconds_of(Rig& rig, const std::function<void(Engine&)>& load) {
    double most_seconds = 0;
    InProcessWorld(InProcessOptions{}).run([&](Transport& transport) {
        Deadlines deadlines(transport);
        Engine engine(rig.plan, rig.prepared.program, rig.prepared.sources, rig.data, deadlines);
        deadlines.set_deadline(kOwnSeconds);
        deadlines.most_seconds = 0;
        load(engine);
        EXPECT_EQ(deadlines.deadline_seconds(), kOwnSeconds);
        most_seconds = deadlines.most_seconds;
    });
    return most_seconds;
}

TEST(ReadingTime, ACheckpointAndWeightsToBeginWithHaveTheirs) {
    const TemporaryFolder folder;
    const std::string run = "run.dir=\"" + folder.path("run") + "\"";
    Rig rig = set_up_tiny("mlp", folder.path("."), {run});
    const Program& program = rig.prepared.program;
    most_seconds_of(rig, [&](Engine& engine) {
        engine.run_step(0);
        EXPECT_EQ(save_checkpoint(engine, rig.plan, program, 1).problem, "");
    });
    const CheckpointStore store(folder.path("run"));
    const std::filesystem::path saved = store.list().at(0);
    const double seconds = reading_seconds(size_of_folder(saved));
    EXPECT_GT(seconds, reading_seconds(0));
    TextLog log;
    const auto resume = [&](Engine& engine) {
        EXPECT_EQ(resume_checkpoint(engine, rig.plan, program, store, log.log)->step, 1);
    };
    EXPECT_EQ(most_seconds_of(rig, resume), seconds);
    rig.plan.checkpoint.resume = saved.string();
    EXPECT_EQ(most_seconds_of(rig, resume), seconds) << "named";
    rig.plan.checkpoint.resume = (saved / "manifest.json").string();
    most_seconds_of(rig, [&](Engine& engine) {
        const auto open = [&] { resume_checkpoint(engine, rig.plan, program, store, log.log); };
        EXPECT_HAS(error_of(ErrorKind::MissingInput, open), "manifest.json is not a checkpoint");
    });
    rig.plan.model.init_from = saved.string();
    const auto begin = [&](Engine& engine) { load_initial_weights(engine, rig.plan, program, log.log); };
    EXPECT_GT(most_seconds_of(rig, begin), reading_seconds(0));
}

}  // namespace
}  // namespace vpp::test
