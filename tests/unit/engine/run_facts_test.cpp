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

TEST(RunFacts, whatACheckpointSaysCannotSteerATerminal) {
    TextLog log;
    CheckpointState saved;
    saved.facts = {{"seed", "\x1b[31m1"}, {"threads", "\x1b[2J"}};
    compare_facts(saved, {{"threads", "1"}}, "run", log.log);
    EXPECT_HAS(log.text.str(), "threads was ?[2J, now 1");
    EXPECT_HAS(error_of(ErrorKind::Refused,
                        [&] {
                            compare_facts(saved, {{"seed", "2"}}, "run", log.log);
                        }),
               "seed was ?[31m1, now 2");
}

TEST(RunFacts, otherValidationDataAreSaidAndMakeNoOtherRun) {
    for (const auto& [before, now] : {std::pair("a", "a+b"), {"a+b", "a+c"}, {"a+b", "a"}}) {
        TextLog log;
        CheckpointState saved;
        saved.facts = {{"data", before}};
        EXPECT_NO_THROW(compare_facts(saved, {{"data", now}}, "run", log.log));
        EXPECT_HAS(log.text.str(), "resumed with other validation data: losses of evaluations from here on are of ");
    }
    TextLog log;
    CheckpointState saved;
    saved.facts = {{"data", "a+b"}};
    EXPECT_NO_THROW(compare_facts(saved, {{"data", "a+b"}}, "run", log.log));
    EXPECT_EQ(log.text.str(), "");
    EXPECT_HAS(error_of(ErrorKind::Refused,
                        [&] {
                            compare_facts(saved, {{"data", "c+b"}}, "run", log.log);
                        }),
               "run belongs to another run: the training data was a, now c; set it back");
}

TEST(RunFacts, whatIsRefusedIsNotResumed) {
    TextLog log;
    CheckpointState saved;
    saved.facts = {{"seed", "1"}, {"threads", "2"}};
    error_of(ErrorKind::Refused, [&] { compare_facts(saved, {{"seed", "2"}, {"threads", "1"}}, "run", log.log); });
    EXPECT_EQ(log.text.str(), "");
}

TEST(RunFacts, whatTheFilesAreMadeToIsOneOfThem) {
    const TemporaryFolder folder;
    Rig rig = set_up_tiny("mlp", folder.path("."));
    const auto facts = [&] { return facts_of(rig.plan, rig.prepared.program); };
    EXPECT_EQ(facts().at("data.transform"), "[]");
    CheckpointState plain, old;
    plain.facts = facts();
    rig.plan.data.transforms = {{.field = "x", .crop = {28, 28}, .flip = 0.5}};
    EXPECT_EQ(facts().at("data.transform"), R"([{"field":"x","crop":[28,28],"flip":0.5}])");
    // A checkpoint that is older than the key had none of it, and goes on without.
    for (const CheckpointState& saved : {plain, old}) {
        TextLog log;
        EXPECT_EQ(fact_of(saved, "data.transform"), "[]");
        EXPECT_HAS(
            error_of(ErrorKind::Refused, [&] { compare_facts(saved, facts(), "run", log.log); }),
            "run belongs to another run: data.transform was [], now [{\"field\":\"x\",\"crop\":[28,28],\"flip\":0.5}]"
            "; set it back, or start anew with another run.dir or checkpoint.resume = \"no\"");
    }
    TextLog log;
    CheckpointState changed;
    changed.facts = facts();
    EXPECT_NO_THROW(compare_facts(changed, facts(), "run", log.log));
    rig.plan.data.transforms[0].deviation = {0.5};
    EXPECT_THROW(compare_facts(changed, facts(), "run", log.log), Error);
    rig.plan.data.transforms = {};
    EXPECT_NO_THROW(compare_facts(old, facts(), "run", log.log));
    EXPECT_EQ(fact_of(old, "data.shuffle"), std::nullopt);
}

TEST(RunFacts, submodulesThatStayInEvalModeAreOneOfThem) {
    const TemporaryFolder folder;
    Rig rig = set_up_tiny("mlp", folder.path("."));
    const CheckpointState old;
    TextLog log;
    EXPECT_NO_THROW(compare_facts(old, facts_of(rig.plan, rig.prepared.program), "run", log.log));
    rig.plan.model.eval_modules = {"teacher"};
    EXPECT_HAS(error_of(ErrorKind::Refused,
                        [&] { compare_facts(old, facts_of(rig.plan, rig.prepared.program), "run", log.log); }),
               "run belongs to another run: model.eval_modules was [], now [\"teacher\"]; set it back");
}

TEST(RunFacts, whatGoesWhereIsOneOfThem) {
    const TemporaryFolder folder;
    const Rig rig = set_up_tiny("mlp", folder.path("."), {"model.inputs=[\"x\", \"y\"]"});
    const Rig by_name = set_up_tiny("mlp", folder.path("."));
    const auto facts = facts_of(rig.plan, rig.prepared.program);
    EXPECT_EQ(facts_of(by_name.plan, by_name.prepared.program), facts) << "the arguments' own names are the same";
    CheckpointState saved, old;
    saved.facts = old.facts = facts;
    for (const char* name : {"model.inputs", "model.loss_reduction", "the type of the tokens"}) old.facts.erase(name);
    const auto expect_refused = [&](const std::string& change, const std::function<void(Plan&, Program&)>& make) {
        Plan plan = rig.plan;
        Program program = rig.prepared.program;
        make(plan, program);
        TextLog log;
        EXPECT_NO_THROW(compare_facts(old, facts_of(plan, program), "run", log.log)) << "it does not know";
        EXPECT_HAS(error_of(ErrorKind::Refused, [&] { compare_facts(saved, facts_of(plan, program), "run", log.log); }),
                   "run belongs to another run: " + change + "; set it back");
    };
    expect_refused("model.inputs was [\"x\",\"y\"], now [\"y\",\"x\"]", [](Plan&, Program& program) {
        std::swap(program.training.graph.inputs[0].name, program.training.graph.inputs[1].name);
    });
    expect_refused("model.loss_reduction was mean, now sum",
                   [](Plan& plan, Program&) { plan.model.loss_reduction = "sum"; });
    expect_refused("the type of the tokens was , now uint32",
                   [](Plan&, Program& program) { program.token_types = "uint32"; });
    TextLog log;
    Plan plan = rig.plan;
    plan.data.token_dtype = "uint16";  // what auto takes where no header says it
    EXPECT_NO_THROW(compare_facts(saved, facts_of(plan, rig.prepared.program), "run", log.log));
}

/// What a resume of `saved` says, without the words that all such lines begin with.
std::string words_of(const CheckpointState& saved, const std::map<std::string, std::string>& now) {
    TextLog log;
    compare_facts(saved, now, "run", log.log);
    std::istringstream lines(log.text.str());
    std::string words, line;
    const std::string begin = "so other bits are possible: ";
    while (std::getline(lines, line)) words += line.substr(line.find(begin) + begin.size()) + '\n';
    return words;
}

TEST(RunFacts, whatChangesInAListIsSaidByPlanKey) {
    const TemporaryFolder folder;
    Rig rig = set_up_tiny("mlp", folder.path("."));
    const auto facts = [&] { return facts_of(rig.plan, rig.prepared.program); };
    OptimizerPlan& optimizer = rig.plan.optimizer;
    optimizer.values.lr = 0.003;
    optimizer.groups = {{.match = {"*.bias"}, .values = optimizer.values}};
    optimizer.groups[0].values.weight_decay = 0.5;
    CheckpointState saved;
    saved.facts = facts();
    optimizer.values.lr = optimizer.groups[0].values.lr = 0.001;
    EXPECT_EQ(words_of(saved, facts()), "optimizer.lr was 0.003, now 0.001\n") << "what a group inherits is said once";
    optimizer.values.beta2 = 0.5;
    optimizer.clip_norm = 2;
    optimizer.groups[0].values.weight_decay = 0;
    EXPECT_EQ(words_of(saved, facts()),
              "optimizer.betas[1] was 0.999, now 0.5; optimizer.clip_norm was 0.7, now 2.0; "
              "optimizer.group[0].weight_decay was 0.5, now 0.0; optimizer.lr was 0.003, now 0.001\n");
    optimizer.groups[0].match = {"*"};
    EXPECT_HAS(words_of(saved, facts()), "; optimizer.group was [[\"*.bias\"]], now [[\"*\"]]; optimizer.lr was");
    // The form of another vpp is shown as it is.
    saved.facts["optimizer values"] = "[1]";
    EXPECT_HAS(words_of(saved, facts()), "optimizer values was [1], now [\"[");
}

TEST(RunFacts, everyNumberOfAListIsInIt) {
    const TemporaryFolder folder;
    const Rig rig = set_up_tiny("mlp", folder.path("."));
    const auto facts_with = [&](const std::function<void(Plan&)>& change) {
        Plan plan = rig.plan;
        plan.data.transforms = {{.field = "x"}};
        plan.lr_schedule.restart_every = 3;
        change(plan);
        return facts_of(plan, rig.prepared.program);
    };
    const auto usual = facts_with([](Plan&) {});
    const auto expect_change = [&](const std::string& name, const std::function<void(Plan&)>& change) {
        const auto facts = facts_with(change);
        std::string changed;
        for (const auto& [key, value] : facts) changed += value == usual.at(key) ? "" : key + ";";
        EXPECT_EQ(changed, name + ";");
    };
    const std::vector<std::function<void(TransformPlan&)>> transforms{
        [](TransformPlan& t) { t.field = "z"; },   [](TransformPlan& t) { t.resize = {2, 2}; },
        [](TransformPlan& t) { t.crop = {2, 2}; }, [](TransformPlan& t) { t.pad = 1; },
        [](TransformPlan& t) { t.flip = 0.5; },    [](TransformPlan& t) { t.scale = 2; },
        [](TransformPlan& t) { t.mean = {1}; },    [](TransformPlan& t) { t.deviation = {2}; }};
    for (const auto& change : transforms) {
        expect_change("data.transform", [&](Plan& plan) { change(plan.data.transforms[0]); });
    }
    const std::vector<std::function<void(OptimizerValues&)>> values{
        [](OptimizerValues& v) { v.lr *= 2; },
        [](OptimizerValues& v) { v.weight_decay += 1; },
        [](OptimizerValues& v) { v.beta1 = 0.1; },
        [](OptimizerValues& v) { v.beta2 = 0.1; },
        [](OptimizerValues& v) { v.eps = 0.1; },
        [](OptimizerValues& v) { v.momentum = 0.1; },
        [](OptimizerValues& v) { v.dampening = 0.1; },
        [](OptimizerValues& v) { v.nesterov = !v.nesterov; },
        [](OptimizerValues& v) { v.amsgrad = !v.amsgrad; }};
    for (const auto& change : values) {
        expect_change("optimizer values", [&](Plan& plan) { change(plan.optimizer.values); });
    }
    const std::vector<std::function<void(LrSchedulePlan&)>> schedules{
        [](LrSchedulePlan& s) { s.kind = "wsd"; }, [](LrSchedulePlan& s) { s.warmup_steps += 1; },
        [](LrSchedulePlan& s) { s.min_lr += 1; },  [](LrSchedulePlan& s) { s.decay_steps += 1; },
        [](LrSchedulePlan& s) { s.gamma = 0.2; },  [](LrSchedulePlan& s) { s.restart_every = 4; }};
    for (const auto& change : schedules) {
        expect_change("learning rate schedule", [&](Plan& plan) { change(plan.lr_schedule); });
    }
    expect_change("data.shuffle", [](Plan& plan) { plan.data.shuffle = !plan.data.shuffle; });
    expect_change("data.weights", [](Plan& plan) { plan.data.weights = {1, 2}; });
    expect_change("data.documents", [](Plan& plan) { plan.data.documents = "apart"; });
    expect_change("data.val_split", [](Plan& plan) { plan.data.val_split = 0.25; });
    expect_change("data.sequence_length", [](Plan& plan) { plan.data.sequence_length += 1; });
    expect_change("freeze", [](Plan& plan) { plan.model.freeze = {"*"}; });
    expect_change("tied_gradients", [](Plan& plan) { plan.pipeline.tied_gradients = "other"; });
}

TEST(RunFacts, theScheduleIsSaidByPlanKey) {
    const TemporaryFolder folder;
    Rig rig = set_up_tiny("mlp", folder.path("."));
    CheckpointState saved;
    saved.facts = facts_of(rig.plan, rig.prepared.program);
    rig.plan.lr_schedule.kind = "cosine";
    rig.plan.lr_schedule.restart_every = 7;
    EXPECT_EQ(words_of(saved, facts_of(rig.plan, rig.prepared.program)),
              "lr_schedule.kind was \"constant\", now \"cosine\"; lr_schedule.restart_every was 0, now 7\n");
}

TEST(RunFacts, anotherNumberOfStepsIsSaidWhereItMovesTheRate) {
    const TemporaryFolder folder;
    Rig rig = set_up_tiny("mlp", folder.path("."));
    rig.plan.optimizer.values.lr = 0.003;
    const auto words = [&](const std::string& kind, int64_t step, int64_t decay_steps = 0) {
        rig.plan.lr_schedule = {.kind = kind, .warmup_steps = 4, .min_lr = 0.0003, .decay_steps = decay_steps};
        CheckpointState saved;
        saved.step = step;
        saved.facts = facts_of(rig.plan, rig.prepared.program);
        std::map<std::string, std::string> now = saved.facts;
        saved.facts["train.steps"] = "12";
        now["train.steps"] = "24";
        CheckpointState old = saved;
        old.facts.erase("train.steps");
        EXPECT_EQ(words_of(old, now), "") << "it does not know";
        return words_of(saved, now);
    };
    EXPECT_EQ(
        words("cosine", 12),
        "train.steps was 12, now 24, and the learning rate (cosine) spans them: it was 0.000403 at step 12 and is "
        "0.00207 at step 13; lr_schedule.decay_steps = 8 keeps the old span\n");
    EXPECT_HAS(words("linear", 8),
               "the learning rate (linear) spans them: it was 0.00199 at step 8 and is 0.00246 at step 9");
    EXPECT_HAS(words("wsd", 12),
               "the learning rate (wsd) spans them: it was 0.00165 at step 12 and is 0.003 at step 13\n");
    // As in a training that had as many steps from the beginning.
    EXPECT_EQ(words("wsd", 8), "") << "it does not decay yet";
    EXPECT_EQ(words("cosine", 4), "") << "the warm-up";
    EXPECT_EQ(words("cosine", 12, 8), "");
    EXPECT_EQ(words("constant", 12), "");
    EXPECT_EQ(words("cosine", 0), "");
    EXPECT_EQ(words("cosine", 24), "") << "it is at its end";
    CheckpointState saved;
    saved.step = 12;
    saved.facts = facts_of(rig.plan, rig.prepared.program);
    saved.facts["train.steps"] = "12";
    rig.plan.lr_schedule.kind = "linear";
    std::map<std::string, std::string> now = facts_of(rig.plan, rig.prepared.program);
    now["train.steps"] = "24";
    EXPECT_EQ(words_of(saved, now).find("spans"), std::string::npos) << "the schedule itself is another";
}

TEST(RunFacts, theTargetOfTheLossIsOneOfThem) {
    const TemporaryFolder folder;
    const Rig rig = set_up_tiny("mlp", folder.path("."));
    Plan plan = rig.plan;
    plan.loss = LossPlan{.kind = "mse", .target = "y"};
    const auto before = facts_of(plan, rig.prepared.program);
    CheckpointState saved;
    saved.facts = before;
    EXPECT_EQ(before.at("model.inputs"), R"(["x"])") << "the target is no argument";
    plan.loss->target = "z";
    Program program = rig.prepared.program;
    program.training.graph.inputs.back().name = "z";
    TextLog log;
    const std::string error =
        error_of(ErrorKind::Refused, [&] { compare_facts(saved, facts_of(plan, program), "run", log.log); });
    EXPECT_HAS(error, "loss.target was y, now z");
    EXPECT_EQ(error.find("model.inputs"), std::string::npos) << error;
}

}  // namespace
}  // namespace vpp::test
