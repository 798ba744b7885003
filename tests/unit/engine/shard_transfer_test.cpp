#include "engine/shard_transfer.hpp"

#include "comm/in_process.hpp"
#include "support/pipeline.hpp"
#include "unit/checkpoint/samples.hpp"

namespace vpp {
namespace {

using test::expect_error;
namespace fs = std::filesystem;

/// Flips one bit of the n-th large message, or passes all on.
class FlippingShard : public PassingTransport {
  public:
    FlippingShard(Transport& inner, int wanted) : PassingTransport(inner), wanted_(wanted) {}
    void send(int peer, const Channel& channel, Buffer message) override {
        if (message.bytes().size() > 100'000 && ++number_ == wanted_) message.bytes()[5] ^= std::byte{1};
        PassingTransport::send(peer, channel, std::move(message));
    }

  private:
    int wanted_, number_ = 0;
};

/// Rank 0's folder has a checkpoint of one shard of 9 MB; rank 1 has none.
class ShardTransferTest : public testing::Test {
  protected:
    ShardTransferTest() {
        CheckpointStore store(scratch_.path() / "a");
        store.begin(50, "s50");
        const Bytes bytes(9'000'001, std::byte{7});
        const ShardRecord shard =
            store.write_shard(50, "s50", 0, {{"model.x", DType::U8, {static_cast<int64_t>(bytes.size())}, bytes}});
        from_ = store.commit("s50", test::sample_state(50), {shard});
    }

    void transfer(int flipped = 0) {
        InProcessWorld({.num_ranks = 2}).run([&](Transport& inner) {
            FlippingShard transport(inner, flipped);
            JobCheckpoint checkpoint;
            checkpoint.manifest = CheckpointReader(from_).manifest();
            checkpoint.parts[0] = {from_, true, {true}};
            checkpoint.parts[1] = {to_, false, {false}};
            EXPECT_EQ(source_of(checkpoint, 0), 0);
            transfer_shards(transport, checkpoint, {{0, 0, 1}});
            EXPECT_TRUE(checkpoint.parts[1].is_there && checkpoint.parts[1].holds[0]);
        });
    }

    test::ScratchFolder scratch_;
    fs::path from_, to_ = scratch_.path() / "b" / "checkpoints" / "step-00000050";
};

TEST_F(ShardTransferTest, AShardArrivesInPieces) {
    transfer();
    CheckpointReader(to_).verify();
    EXPECT_EQ(test::read_file(to_ / "shard-00000.safetensors"), test::read_file(from_ / "shard-00000.safetensors"));
    EXPECT_EQ(test::read_file(to_ / "manifest.json"), test::read_file(from_ / "manifest.json"));
}

TEST_F(ShardTransferTest, ABitThatFlipsOnTheWayIsFoundAndNothingIsLeft) {
    for (int piece : {1, 3}) {
        expect_error(ErrorKind::BadData, "arrived damaged", [&] { transfer(piece); });
        EXPECT_FALSE(fs::exists(to_ / "shard-00000.safetensors"));
        EXPECT_EQ(std::distance(fs::directory_iterator(to_.parent_path()), fs::directory_iterator()), 1);
        fs::remove_all(to_);
    }
}

}  // namespace
}  // namespace vpp
