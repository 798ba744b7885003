#include "engine/job_checkpoint.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "comm/in_process.hpp"
#include "unit/checkpoint/samples.hpp"

namespace vpp {
namespace {

using test::expect_error;
namespace fs = std::filesystem;

const std::string kFirst = "shard-00000.safetensors", kSecond = "shard-00001.safetensors";

/// Two hosts with a run folder each; rank 0 on alpha, rank 1 on beta.
class JobCheckpointTest : public testing::Test {
  protected:
    /// Begins in both, writes a shard into each.
    Manifest write(int64_t step, const std::string& save_id, int salt) {
        const test::SampleState state(salt);
        Manifest manifest;
        manifest.save_id = save_id;
        manifest.state = test::sample_state(step);
        for (int host = 0; host < 2; ++host) {
            CheckpointStore& store = stores_[static_cast<size_t>(host)];
            store.begin(step, save_id);
            manifest.shards.push_back(
                store.write_shard(step, save_id, host, state.tensors("." + std::to_string(host))));
        }
        return manifest;
    }
    void publish(size_t host, const Manifest& manifest) { stores_[host].publish(manifest, {manifest.shards[host]}); }
    void save(int64_t step, const std::string& save_id, int salt) {
        const Manifest manifest = write(step, save_id, salt);
        for (size_t host = 0; host < 2; ++host) publish(host, manifest);
        for (CheckpointStore& store : stores_) store.confirm(step);
    }
    fs::path place(size_t host, int64_t step) const { return stores_[host].place_of(step); }

    /// The save id of the newest, the same on both ranks; "" for none.
    std::string newest() {
        log_text_.str("");
        std::array<std::string, 2> found;
        on_both([&](Transport& transport, size_t rank) {
            std::vector<std::string> lost;
            const auto checkpoint = find_newest(transport, folders_, stores_[rank], log_, lost);
            found[rank] = checkpoint ? checkpoint->manifest.save_id : "";
            if (rank == 0) lost_ = lost;
            if (rank == 0 && checkpoint) last_ = *checkpoint;
        });
        EXPECT_EQ(found[0], found[1]);
        return found[0];
    }
    void named(const std::string& name) {
        on_both([&](Transport& transport, size_t rank) {
            find_named(transport, folders_, stores_[rank].place_of(50).parent_path() / name);
        });
    }
    void on_both(const std::function<void(Transport&, size_t)>& body) const {
        InProcessWorld({.num_ranks = 2}).run([&](Transport& transport) {
            body(transport, static_cast<size_t>(transport.rank()));
        });
    }

    void expect_said(const std::string& part) const {
        EXPECT_NE(log_text_.str().find(part), std::string::npos) << log_text_.str() << "\nexpected " << part;
    }
    static void flip(const fs::path& path) {
        std::string text = test::read_file(path);
        text[text.size() - 5] = static_cast<char>(text[text.size() - 5] ^ 1);
        test::write_file(path, text);
    }

    test::ScratchFolder scratch_;
    std::array<CheckpointStore, 2> stores_{CheckpointStore(scratch_.path() / "a"),
                                           CheckpointStore(scratch_.path() / "b")};
    RunFolders folders_{{0, 1}, {"alpha", "beta"}};
    std::ostringstream log_text_;
    Logger log_ = make_stream_logger(log_text_);
    JobCheckpoint last_;
    std::vector<std::string> lost_;
};

TEST_F(JobCheckpointTest, TheNewestIsWhatTheFoldersHoldTogether) {
    EXPECT_EQ(newest(), "");
    save(50, "s50", 1);
    save(60, "s60", 2);
    EXPECT_EQ(newest(), "s60");
    EXPECT_EQ(log_text_.str(), "");
    EXPECT_EQ(last_.parts.at(0).holds, (std::vector<bool>{true, false}));
    EXPECT_EQ(last_.parts.at(1).holds, (std::vector<bool>{false, true}));
    for (const CheckpointStore& store : stores_) {
        std::vector<std::string> skipped;
        EXPECT_FALSE(store.newest_verified(skipped)) << "a folder alone stays strict";
        EXPECT_NE(skipped.at(0).find("this folder holds 1 of 2 shards; the run folder of another host may hold"),
                  std::string::npos);
    }
}

TEST_F(JobCheckpointTest, WhatLacksAShardOrIsDamagedIsSkippedAndSaid) {
    const std::vector<std::pair<std::string, std::function<void()>>> damages{
        {"no run folder of the job holds a whole shard-00001.safetensors (rank 0 on alpha: it is not there; rank 1 on "
         "beta: it is not there)",
         [&] { fs::remove(place(1, 60) / kSecond); }},
        {"shard-00001.safetensors: damaged: its checksum is", [&] { flip(place(1, 60) / kSecond); }},
        {"rank 1 on beta: it has no such checkpoint", [&] { fs::remove_all(place(1, 60)); }},
        {"rank 1 on beta: " + (place(1, 60) / "manifest.json").string() + ": damaged",
         [&] { flip(place(1, 60) / "manifest.json"); }},
        {"extra: is not in the manifest's list", [&] { test::write_file(place(0, 60) / "extra", ""); }},
        {"belongs to save 's50'",
         [&] {
             // Checksum and size fit, since the manifest lies too: only the save id tells.
             Manifest lie = CheckpointReader(place(0, 60)).manifest();
             lie.shards = CheckpointReader(place(0, 50)).manifest().shards;
             for (size_t host = 0; host < 2; ++host) {
                 fs::remove_all(place(host, 60));
                 stores_[host].begin(60, "s60");
                 fs::copy(place(host, 50) / lie.shards[host].file,
                          place(host, 60).parent_path() / ".tmp-step-00000060-s60" / lie.shards[host].file);
                 publish(host, lie);
             }
         }},
    };
    for (const auto& [text, damage] : damages) {
        for (size_t host = 0; host < 2; ++host) fs::remove_all(place(host, 50).parent_path());
        save(50, "s50", 1);
        save(60, "s60", 2);
        ASSERT_EQ(newest(), "s60");
        damage();
        EXPECT_EQ(newest(), "s50") << text;
        expect_said("checkpoint skipped: ");
        expect_said(text);
        EXPECT_TRUE(std::ranges::any_of(lost_, [&](const std::string& why) { return why.find(text) != why.npos; }));
    }
}

TEST_F(JobCheckpointTest, WhatMayBeWholeIsNotSkipped) {
    save(50, "s50", 1);
    save(60, "s60", 2);
    const std::string manifest = test::read_file(place(1, 60) / "manifest.json");
    test::set_format_version(place(1, 60), 2);
    expect_error(ErrorKind::BadData, "format version 2, this vpp reads version 1", [&] { newest(); });
    test::set_format_version(place(1, 50), 2);
    test::write_file(place(1, 60) / "manifest.json", manifest);
    EXPECT_EQ(newest(), "s60") << "an older one is nobody's concern";
    for (const fs::path& path : {scratch_.path(), scratch_.path() / "a", scratch_.path() / "b"}) {
        fs::permissions(path, fs::perms(0755));
    }
    for (const fs::path& path : {place(1, 60) / kSecond, place(1, 60) / "manifest.json", place(0, 60)}) {
        const fs::perms before = fs::status(path).permissions();
        EXPECT_EQ(test::code_in_child([&] { newest(); }), 0) << "the control";
        fs::permissions(path, fs::perms::none);
        EXPECT_EQ(test::code_in_child([&] { newest(); }), exit_code(ErrorKind::Io)) << path;
        fs::permissions(path, before);
    }
}

TEST_F(JobCheckpointTest, ACrashBetweenTheCommitsLeavesTheOldOne) {
    save(50, "s50", 1);
    for (size_t host = 0; host < 2; ++host) {
        publish(host, write(60, "s60", 2));
        EXPECT_EQ(newest(), "s50") << "only host " << host << " has committed";
        expect_said("it has no such checkpoint");
        EXPECT_TRUE(lost_.empty()) << "it was never a checkpoint";
        fs::remove_all(place(host, 60));
    }
}

TEST_F(JobCheckpointTest, ACrashWhileASaveOfTheSameStepReplacesItLeavesOneOfThem) {
    save(50, "old", 1);
    const Manifest manifest = write(50, "new", 2);
    publish(0, manifest);
    EXPECT_EQ(newest(), "old");
    EXPECT_EQ(last_.parts.at(0).folder.filename(), "step-00000050.old");
    stores_[0].remove_left_overs();
    EXPECT_EQ(newest(), "old") << "a folder alone cannot tell which of two parts is good";
    publish(1, manifest);
    EXPECT_EQ(newest(), "new");
    EXPECT_EQ(last_.parts.at(0).folder.filename(), "step-00000050");
    stores_[0].confirm(50);
    EXPECT_EQ(newest(), "new");
    stores_[1].settle(50, "new");
    EXPECT_EQ(newest(), "new");
    EXPECT_FALSE(fs::exists(place(1, 50).string() + ".old"));
}

TEST_F(JobCheckpointTest, ManifestsOfOneSaveThatDifferAreSkipped) {
    save(50, "s50", 1);
    Manifest manifest = write(60, "s60", 2);
    publish(0, manifest);
    manifest.state.samples += 1;
    publish(1, manifest);
    EXPECT_EQ(newest(), "s50");
    expect_said("rank 1 on beta has another manifest of save s60");
}

TEST_F(JobCheckpointTest, AShardThatIsDamagedInOneFolderIsTakenFromAnother) {
    save(50, "s50", 1);
    fs::copy(place(1, 50) / kSecond, place(0, 50) / kSecond);
    flip(place(1, 50) / kSecond);
    EXPECT_EQ(newest(), "s50");
    EXPECT_EQ(last_.parts.at(0).holds, (std::vector<bool>{true, true}));
    EXPECT_EQ(last_.parts.at(1).holds, (std::vector<bool>{false, false}));
}

TEST_F(JobCheckpointTest, ANamedOneMustBeWhole) {
    save(50, "s50", 1);
    EXPECT_NO_THROW(named("step-00000050"));
    expect_error(ErrorKind::MissingInput, "is not a checkpoint", [&] { named("step-00000070"); });
    const std::string good = test::read_file(place(1, 50) / kSecond);
    flip(place(1, 50) / kSecond);
    expect_error(ErrorKind::BadData, "rank 1 on beta: ", [&] { named("step-00000050"); });
    fs::remove(place(1, 50) / kSecond);
    expect_error(ErrorKind::MissingInput, "holds a whole shard-00001.safetensors (rank 0 on alpha: it is not there",
                 [&] { named("step-00000050"); });
}

TEST_F(JobCheckpointTest, OnlyWhatIsWantedIsBrought) {
    save(50, "s50", 1);
    ASSERT_EQ(newest(), "s50");
    on_both([&](Transport& transport, size_t rank) {
        JobCheckpoint checkpoint = last_;
        const std::set<std::string> wanted{rank == 0 ? "model.mask.1" : "model.empty.1", "no such tensor"};
        const CheckpointReader reader = bring_shards(transport, folders_, checkpoint, wanted, log_);
        EXPECT_TRUE(reader.contains("model.mask.1"));
        EXPECT_EQ(reader.contains("model.mask.0"), rank == 0);
    });
    expect_said("rank 0 on alpha gets shard-00001.safetensors of step 50 (");
    EXPECT_TRUE(test::holds(place(0, 50), 1)) << "it stays there, and the folder is whole now";
    EXPECT_FALSE(fs::exists(place(1, 50) / kFirst));
}

TEST_F(JobCheckpointTest, AHostThatJoinsGetsWhatItNeeds) {
    save(50, "s50", 1);
    CheckpointStore third(scratch_.path() / "c");
    const RunFolders folders({0, 1, 2}, {"alpha", "beta", "gamma"});
    InProcessWorld({.num_ranks = 3}).run([&](Transport& transport) {
        const auto rank = static_cast<size_t>(transport.rank());
        std::vector<std::string> lost;
        auto checkpoint = find_newest(transport, folders, rank == 2 ? third : stores_[rank], log_, lost);
        ASSERT_TRUE(checkpoint);
        const std::set<std::string> wanted{rank == 2 ? "model.mask.0" : "model.mask." + std::to_string(rank)};
        const CheckpointReader reader = bring_shards(transport, folders, *checkpoint, wanted, log_);
        EXPECT_TRUE(reader.contains(*wanted.begin()));
    });
    EXPECT_TRUE(fs::exists(third.place_of(50) / kFirst));
    EXPECT_FALSE(fs::exists(third.place_of(50) / kSecond));
}

TEST_F(JobCheckpointTest, OneTensorInTwoShardsIsRefused) {
    const test::SampleState state(1);
    Manifest manifest;
    manifest.save_id = "s50";
    manifest.state = test::sample_state(50);
    for (int host = 0; host < 2; ++host) {
        stores_[static_cast<size_t>(host)].begin(50, "s50");
        manifest.shards.push_back(stores_[static_cast<size_t>(host)].write_shard(50, "s50", host, state.tensors()));
    }
    for (size_t host = 0; host < 2; ++host) publish(host, manifest);
    ASSERT_EQ(newest(), "s50");
    expect_error(ErrorKind::BadData, "that shard-00000.safetensors holds too", [&] {
        on_both([&](Transport& transport, size_t) {
            JobCheckpoint checkpoint = last_;
            bring_shards(transport, folders_, checkpoint, {"model.mask"}, log_);
        });
    });
}

}  // namespace
}  // namespace vpp
