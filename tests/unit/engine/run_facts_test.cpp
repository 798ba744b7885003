// Which facts refuse a resume is seen in checkpointing_test, with real checkpoints.
#include "engine/run_facts.hpp"

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

TEST(RunFacts, theLayoutIsNoneOfThem) {
    const TemporaryFolder folder;
    const Rig one = set_up_tiny("mlp", folder.path("."));
    const Rig other = set_up_tiny("mlp", folder.path("."), {"mesh.pp=2", "pipeline.schedule_type=\"GPIPE\""});
    EXPECT_EQ(facts_of(one.plan, one.prepared.program), facts_of(other.plan, other.prepared.program));
    const Rig changed = set_up_tiny("mlp", folder.path("."), {"optimizer.eps=1e-9"});
    EXPECT_NE(facts_of(one.plan, one.prepared.program), facts_of(changed.plan, changed.prepared.program));
}

TEST(RunFacts, whatOnlyOneSideKnowsIsNotCompared) {
    TextLog log;
    CheckpointState saved;
    saved.facts = {{"seed", "1"}, {"validation_loss", "0.5"}};
    EXPECT_NO_THROW(compare_facts(saved, {{"seed", "1"}, {"dp", "1"}}, "run", log.log));
    EXPECT_EQ(log.text.str(), "");
    EXPECT_HAS(error_of(ErrorKind::Refused,
                        [&] {
                            compare_facts(saved, {{"seed", "2"}}, "run", log.log);
                        }),
               "run belongs to another run: seed was 1, now 2");
}

}  // namespace
}  // namespace vpp::test
