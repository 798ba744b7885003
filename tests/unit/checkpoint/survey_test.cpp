#include "checkpoint/survey.hpp"

#include <algorithm>

#include "samples.hpp"

namespace vpp {
namespace {

using test::expect_error;
namespace fs = std::filesystem;

std::vector<std::string> names_of(const std::vector<fs::path>& paths) {
    std::vector<std::string> names;
    for (const fs::path& path : paths) names.push_back(path.filename().string());
    return names;
}

using Names = std::vector<std::string>;

/// A run with checkpoints of steps 10, 20, 30 and 40.
class SurveyTest : public testing::Test {
  protected:
    SurveyTest() : run_(scratch_.path() / "run"), store_(run_) {
        for (int step = 10; step <= 40; step += 10) test::save(store_, step, "s" + std::to_string(step), step);
    }
    fs::path checkpoint(int step) const { return run_ / "checkpoints" / ("step-000000" + std::to_string(step)); }
    /// Same size, other bytes: only checksums find it.
    void flip(int step) const {
        const fs::path shard = checkpoint(step) / "shard-00001.safetensors";
        std::string text = test::read_file(shard);
        text.back() = static_cast<char>(text.back() ^ 1);
        test::write_file(shard, text);
    }

    test::ScratchFolder scratch_;
    fs::path run_;
    CheckpointStore store_;
};

TEST_F(SurveyTest, ListsTheNewestFirstAndNamesTheOneThatIsResumed) {
    const RunSurvey survey = survey_run(run_, false);
    ASSERT_EQ(survey.checkpoints.size(), 4u);
    EXPECT_EQ(survey.checkpoints[0].step, 40);
    EXPECT_EQ(survey.checkpoints[3].step, 10);
    EXPECT_EQ(survey.resumed, 0u);
    EXPECT_EQ(survey.checkpoints[0].manifest->state.samples, 40 * 32);
    EXPECT_TRUE(survey.set_aside.empty());
    EXPECT_TRUE(survey.left_overs.empty());
    uint64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(checkpoint(40))) bytes += fs::file_size(entry);
    EXPECT_EQ(survey.checkpoints[0].size_bytes, bytes);
    EXPECT_FALSE(survey.checkpoints[0].is_part);
    EXPECT_GE(survey.checkpoints[0].age_seconds, -5);
    EXPECT_LT(survey.checkpoints[0].age_seconds, 300);
}

TEST_F(SurveyTest, AFlippedBitIsSeenWhenEveryByteIsRead) {
    flip(40);
    EXPECT_EQ(survey_run(run_, false).resumed, 0u);  // the quick look cannot know
    const RunSurvey survey = survey_run(run_, true);
    EXPECT_EQ(survey.resumed, 1u);
    EXPECT_NE(survey.checkpoints[0].damage.text.find("shard-00001.safetensors: damaged"), std::string::npos);
    EXPECT_TRUE(survey.checkpoints[1].damage.empty());
}

// A training refuses to go on from an older one in its place.
TEST_F(SurveyTest, NoneIsResumedBehindOneOfAnotherVersion) {
    flip(40);
    test::set_format_version(checkpoint(30), 2);
    const RunSurvey survey = survey_run(run_, true);
    EXPECT_EQ(survey.resumed, std::nullopt);
    EXPECT_TRUE(survey.checkpoints[1].damage.bars_older);
    EXPECT_TRUE(survey.checkpoints[2].damage.empty());
}

TEST_F(SurveyTest, ALinkIsListedAndBarsOlderOnes) {
    const fs::path away = scratch_.path() / "away";
    fs::rename(checkpoint(40), away);
    fs::create_directory_symlink(away, checkpoint(40));
    const RunSurvey survey = survey_run(run_, true);
    ASSERT_EQ(survey.checkpoints.size(), 4u);
    EXPECT_EQ(survey.resumed, std::nullopt);
    EXPECT_EQ(survey.checkpoints[0].step, 40);
    EXPECT_EQ(survey.checkpoints[0].folder, checkpoint(40));
    EXPECT_TRUE(survey.checkpoints[0].damage.bars_older);
    EXPECT_TRUE(look_at_checkpoint(checkpoint(40), true).damage.empty()) << "who names it means what it leads to";
    const PrunePlan plan = plan_prune(store_, 1, 0);
    EXPECT_EQ(names_of(plan.kept), Names{"step-00000030"});
    ASSERT_EQ(plan.damaged.size(), 1u);
    EXPECT_TRUE(plan.damaged[0].starts_with(checkpoint(40).string() + ": is a symbolic link")) << plan.damaged[0];
    fs::remove_all(away);
    EXPECT_TRUE(survey_run(run_, true).checkpoints[0].damage.bars_older) << "a link that leads nowhere";
}

TEST_F(SurveyTest, TheQuickLookSeesSizesFilesAndManifests) {
    fs::resize_file(checkpoint(40) / "shard-00000.safetensors", 100);
    fs::remove(checkpoint(30) / "manifest.json");
    test::write_file(checkpoint(20) / "more", "x");
    const RunSurvey survey = survey_run(run_, false);
    EXPECT_EQ(survey.resumed, 3u);
    EXPECT_NE(survey.checkpoints[0].damage.text.find("cut off"), std::string::npos)
        << survey.checkpoints[0].damage.text;
    EXPECT_NE(survey.checkpoints[1].damage.text.find("no manifest.json"), std::string::npos);
    EXPECT_FALSE(survey.checkpoints[1].manifest);
    EXPECT_EQ(survey.checkpoints[1].step, 30);
    EXPECT_NE(survey.checkpoints[2].damage.text.find("more"), std::string::npos);
}

TEST_F(SurveyTest, ACheckpointUnderAnotherStepsNameIsDamaged) {
    fs::rename(checkpoint(40), checkpoint(50));
    const RunSurvey survey = survey_run(run_, false);
    EXPECT_EQ(survey.checkpoints[0].step, 50);
    EXPECT_NE(survey.checkpoints[0].damage.text.find("holds step 40"), std::string::npos);
    EXPECT_EQ(survey.resumed, 1u);
}

TEST_F(SurveyTest, WhatWasSetAsideOrLeftOverIsNamed) {
    store_.set_aside_after(30);
    fs::create_directory(run_ / "checkpoints" / ".tmp-step-00000050-x");
    const RunSurvey survey = survey_run(run_, false);
    EXPECT_EQ(survey.checkpoints.size(), 3u);
    EXPECT_EQ(names_of(survey.set_aside), Names{"step-00000040"});
    EXPECT_EQ(names_of(survey.left_overs), Names{".tmp-step-00000050-x"});
}

TEST_F(SurveyTest, TheSizeOfAllIsThatOfWhatDeadSavesLeftToo) {
    uint64_t bytes = 0;
    for (const fs::path& folder : store_.list()) bytes += size_of_folder(folder);
    const fs::path left = run_ / "checkpoints" / ".tmp-step-00000050-x";
    fs::create_directory(left);
    test::write_file(left / "shard-00000.safetensors", "1234567");
    test::write_file(run_ / "checkpoints" / "notes.txt", "mine");
    EXPECT_EQ(size_of_checkpoints(run_), bytes + 7);
    EXPECT_EQ(size_of_checkpoints(run_ / "none"), 0u);
}

TEST_F(SurveyTest, ACopyUnderAnotherNameIsLookedAtToo) {
    fs::rename(checkpoint(40), scratch_.path() / "copy");
    const auto look = [&](bool read_all) { return look_at_checkpoint(scratch_.path() / "copy", read_all); };
    EXPECT_EQ(look(true).step, 40);
    EXPECT_TRUE(look(true).damage.empty());
    fs::remove(scratch_.path() / "copy" / "shard-00001.safetensors");
    EXPECT_TRUE(look(false).is_part);
    EXPECT_NE(look(false).damage.text.find("shard-00001.safetensors: is missing"), std::string::npos);
    fs::remove(scratch_.path() / "copy" / "manifest.json");
    EXPECT_NE(look(false).damage.text.find("is not a checkpoint"), std::string::npos);
}

TEST_F(SurveyTest, FindsWhatAPathMeans) {
    EXPECT_EQ(find_checkpoints(run_).run, run_);
    EXPECT_EQ(find_checkpoints(run_.string() + "/").run, run_);
    EXPECT_EQ(find_checkpoints(run_ / "checkpoints").run, run_);
    EXPECT_TRUE(find_checkpoints(run_).checkpoint.empty());
    EXPECT_EQ(find_checkpoints(checkpoint(20)).checkpoint, checkpoint(20));
    EXPECT_EQ(find_checkpoints(checkpoint(20).string() + "/").run, run_);
    fs::remove(checkpoint(20) / "manifest.json");
    EXPECT_EQ(find_checkpoints(checkpoint(20)).checkpoint, checkpoint(20));
    fs::rename(checkpoint(30), scratch_.path() / "copy");
    EXPECT_EQ(find_checkpoints(scratch_.path() / "copy").checkpoint, scratch_.path() / "copy");
    EXPECT_TRUE(find_checkpoints(scratch_.path() / "copy").run.empty());
    EXPECT_TRUE(look_at_checkpoint(scratch_.path() / "copy", true).damage.empty());
    const std::string remedy = "; name a plan, a run folder or a checkpoint's folder";
    expect_error(ErrorKind::MissingInput, (run_ / "none").string() + " is not there" + remedy,
                 [&] { find_checkpoints(run_ / "none"); });
    expect_error(ErrorKind::MissingInput,
                 scratch_.path().string() + " has no folder 'checkpoints' and no manifest.json" + remedy,
                 [&] { find_checkpoints(scratch_.path()); });
}

TEST_F(SurveyTest, FindsWhatAPathMeansFromWithinTheRun) {
    const fs::path before = fs::current_path();
    fs::current_path(run_);
    const CheckpointPlace all = find_checkpoints("checkpoints"), one = find_checkpoints("checkpoints/step-00000020");
    const size_t num_found = survey_run(all.run, false).checkpoints.size();
    const CheckpointPlace run = find_checkpoints(".");
    fs::current_path(checkpoint(20));
    const CheckpointPlace here = find_checkpoints("."), above = find_checkpoints(".."), up = find_checkpoints("../..");
    fs::current_path(before);
    EXPECT_EQ(run.run, ".");
    EXPECT_EQ(fs::canonical(here.checkpoint), fs::canonical(checkpoint(20)));
    EXPECT_EQ(fs::canonical(here.run), fs::canonical(run_));
    EXPECT_EQ(fs::canonical(above.run), fs::canonical(run_));
    EXPECT_EQ(up.run, "../..");
    EXPECT_EQ(all.run, ".");
    EXPECT_EQ(one.run, ".");
    EXPECT_EQ(num_found, 4u);
}

TEST_F(SurveyTest, AFileInPlaceOfAFolderIsSaid) {
    test::write_file(run_ / "set-aside", "");
    expect_error(ErrorKind::Io, "cannot list the folder " + (run_ / "set-aside").string() + ": Not a directory",
                 [&] { survey_run(run_, false); });
}

TEST_F(SurveyTest, PruneKeepsTheNewestWholeOnesAndTheRegularOnes) {
    const PrunePlan plan = plan_prune(store_, 1, 20);
    EXPECT_EQ(names_of(plan.kept), (Names{"step-00000040", "step-00000020"}));
    EXPECT_EQ(names_of(plan.deleted), (Names{"step-00000030", "step-00000010"}));
    EXPECT_TRUE(plan.damaged.empty());
    for (const fs::path& folder : plan.deleted) store_.remove(folder);
    EXPECT_EQ(names_of(store_.list()), (Names{"step-00000040", "step-00000020"}));
    EXPECT_TRUE(survey_run(run_, true).left_overs.empty());
    EXPECT_TRUE(plan_prune(store_, 2, 0).deleted.empty());
}

TEST_F(SurveyTest, PruneKeepsTheBest) {
    for (const auto& [step, loss] :
         {std::pair{50, "2.5"}, {60, "0.5"}, {70, "nan"}, {74, "1e-3x"}, {76, "abc"}, {78, ""}, {80, "9"}}) {
        const std::string id = "b" + std::to_string(step);
        store_.begin(step, id);
        CheckpointState state = test::sample_state(step);
        state.facts[kValidationLoss] = loss;
        store_.commit(id, state, {store_.write_shard(step, id, 0, test::SampleState(step).tensors())});
    }
    EXPECT_EQ(names_of(plan_prune(store_, 1, 0, 1).kept), (Names{"step-00000080", "step-00000060"}));
    EXPECT_EQ(names_of(plan_prune(store_, 1, 0, 2).kept), (Names{"step-00000080", "step-00000060", "step-00000050"}));
    EXPECT_EQ(names_of(plan_prune(store_, 1, 0, 9).kept), (Names{"step-00000080", "step-00000060", "step-00000050"}));
}

TEST_F(SurveyTest, ADamagedOneDoesNotCountForPrune) {
    flip(40);
    flip(30);
    const PrunePlan plan = plan_prune(store_, 1, 0);
    EXPECT_EQ(names_of(plan.kept), Names{"step-00000020"});
    EXPECT_EQ(names_of(plan.deleted), Names{"step-00000010"});
    EXPECT_EQ(plan.damaged.size(), 2u);
    flip(20);
    flip(10);
    EXPECT_TRUE(plan_prune(store_, 1, 0).deleted.empty());
}

TEST_F(SurveyTest, DamagedOnesAreNeitherRegularNorBestNorDeleted) {
    for (const auto& [step, loss] : {std::pair{50, "0.5"}, {60, "2.5"}, {70, "3.5"}}) {
        const std::string id = "b" + std::to_string(step);
        store_.begin(step, id);
        CheckpointState state = test::sample_state(step);
        state.facts[kValidationLoss] = loss;
        store_.commit(id, state,
                      {store_.write_shard(step, id, 0, test::SampleState(step).tensors(".0")),
                       store_.write_shard(step, id, 1, test::SampleState(step).tensors(".1"))});
    }
    flip(50);
    flip(20);
    const PrunePlan best = plan_prune(store_, 1, 0, 1);
    EXPECT_EQ(names_of(best.kept), (Names{"step-00000070", "step-00000060"}));
    EXPECT_EQ(names_of(best.deleted), (Names{"step-00000040", "step-00000030", "step-00000010"}));
    EXPECT_EQ(best.damaged.size(), 2u);
    EXPECT_EQ(names_of(plan_prune(store_, 1, 20).kept), (Names{"step-00000070", "step-00000060", "step-00000040"}));
}

TEST_F(SurveyTest, PruneDeletesWhatAWholeOneWasToReplace) {
    fs::copy(checkpoint(40), checkpoint(40).string() + ".old");
    const PrunePlan plan = plan_prune(store_, 2, 0);
    EXPECT_EQ(names_of(plan.kept), (Names{"step-00000040", "step-00000030"}));
    EXPECT_EQ(names_of(plan.deleted), (Names{"step-00000040.old", "step-00000020", "step-00000010"}));
}

TEST_F(SurveyTest, OnlyCheckpointsOfTheRunAreRemoved) {
    fs::create_directory(run_ / "checkpoints" / "mine");
    expect_error(ErrorKind::Bug, "only committed checkpoints", [&] { store_.remove(run_ / "checkpoints" / "mine"); });
    expect_error(ErrorKind::Bug, "only committed checkpoints", [&] { store_.remove(checkpoint(70)); });
}

}  // namespace
}  // namespace vpp
