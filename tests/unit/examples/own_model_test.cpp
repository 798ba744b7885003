#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "examples/layers.hpp"
#include "unit/examples/made.hpp"

namespace vpp {
namespace {

using test::contents_of;
using ::testing::HasSubstr;
using ::testing::Not;

/// A model file on disk, and the plan that is made for it.
class OwnModel {
  public:
    OwnModel(const std::string& signature, const std::string& body,
             std::vector<std::pair<std::string, ScriptedModule>> children) {
        ScriptedModule model{"Model", "def forward(self, " + signature + "):\n    " + body + "\n"};
        model.children = std::move(children);
        const std::string path = folder_.write("model.pt", model_file(model, 1));
        made_ = example_of("own-model").make({"mine", path, std::make_shared<const Archive>(path)});
    }
    const std::string& first() const { return made_.first; }
    const std::string& plan() const { return contents_of(made_, "plan.toml"); }
    std::string notes() const {
        std::string text;
        for (const std::string& note : made_.notes) text += note + "\n";
        return text;
    }
    test::Rig rig() const { return test::MadeFolder(made_).rig(); }

  private:
    test::TemporaryFolder folder_;
    MadeExample made_;
};

TEST(OwnModel, ScoresGetALossOverClasses) {
    const OwnModel model("image", "return self.b.forward(torch.relu(self.a.forward(image)))",
                         {{"a", linear(12, 8)}, {"b", linear(8, 5)}});
    EXPECT_THAT(model.plan(), HasSubstr("image = \"float32[12]\"  # guessed: a linear layer takes it\n"));
    EXPECT_THAT(model.plan(), HasSubstr("label = \"int64[] < 5\""));
    EXPECT_THAT(model.plan(), HasSubstr("kind   = \"cross_entropy\""));
    EXPECT_THAT(model.notes(), HasSubstr("guessed the loss cross_entropy with label = int64[]: by the shape of what "
                                         "forward returns\n"));
    EXPECT_EQ(model.first(), "") << "it can run";
    EXPECT_EQ(model.rig().prepared.program.training.split.stages.size(), 2U);
}

TEST(OwnModel, ScoresOfTokensGetALossAlongTheLastDimension) {
    const OwnModel model("ids", "return self.b.forward(torch.relu(self.a.forward(ids)))",
                         {{"a", embedding(40, 8, 0.02)}, {"b", linear(8, 40)}});
    EXPECT_THAT(model.plan(), HasSubstr("ids = \"int64[16] < 40\""));
    EXPECT_THAT(model.plan(), HasSubstr("targets = \"int64[16] < 40\""));
    EXPECT_THAT(model.plan(), HasSubstr("kind   = \"cross_entropy\""));
    EXPECT_THAT(model.plan(), HasSubstr("\nclass_dim = -1 "));
    EXPECT_THAT(model.plan(),
                HasSubstr("# forward returns 40 numbers a token: guessed to be scores of the next one.\n"));
    EXPECT_EQ(model.rig().prepared.program.training.split.stages.size(), 2U);
}

TEST(OwnModel, ScoresOfPixelsGetALossOverClasses) {
    const OwnModel model("image", "return self.b.forward(torch.relu(self.a.forward(image)))",
                         {{"a", conv3x3(3, 4)}, {"b", conv3x3(4, 5)}});
    EXPECT_THAT(model.plan(), HasSubstr("label = \"int64[32, 32] < 5\""));
    EXPECT_THAT(model.plan(), HasSubstr("kind   = \"cross_entropy\""));
    EXPECT_THAT(model.plan(), Not(HasSubstr("class_dim")));
    EXPECT_THAT(model.plan(),
                HasSubstr("# forward returns 5 numbers a pixel: guessed to be scores of as many classes.\n"));
    EXPECT_EQ(model.rig().prepared.program.training.split.stages.size(), 2U);
    const OwnModel image("image", "return self.a.forward(image)", {{"a", conv3x3(3, 3)}});
    EXPECT_THAT(image.plan(), HasSubstr("kind   = \"mse\"")) << "an image again";
}

TEST(OwnModel, WhatFailsOnNumbersIsSaid) {
    const OwnModel model("x", "return torch.index_select(x, 1, torch.arange(35, 36))", {});
    EXPECT_THAT(model.notes(), HasSubstr("with random data and weights of 0.02 it fails: the op aten::index_select"));
}

TEST(OwnModel, LengthsThatNoRandomNumbersCanBeAreLeftToFillIn) {
    const OwnModel model("tokens, n", "return torch._pack_padded_sequence(self.e.forward(tokens), n, True)[0]",
                         {{"e", embedding(50, 8, 1)}});
    EXPECT_THAT(model.plan(), HasSubstr("\nn = \"int64[] < 16\"  # FILL IN: lengths of sequences, of which none may "
                                        "be 0\n"));
}

TEST(OwnModel, NumbersAreCompared) {
    const OwnModel model("target", "return torch.squeeze(self.a.forward(target), 1)", {{"a", linear(12, 1)}});
    EXPECT_THAT(model.plan(), HasSubstr("kind   = \"mse\""));
    EXPECT_THAT(model.plan(), HasSubstr("target_ = \"float32[]\"")) << "the argument has the name already";
    EXPECT_EQ(model.rig().prepared.program.training.split.stages.size(), 2U);
}

TEST(OwnModel, ALossOfItsOwnIsTaken) {
    const OwnModel first("x, y", "return torch.mse_loss(self.a.forward(x), y)", {{"a", linear(12, 3)}});
    EXPECT_THAT(first.plan(), Not(HasSubstr("[loss]")));
    EXPECT_THAT(first.plan(), HasSubstr("y = \"float32[3]\""));
    first.rig();
    const OwnModel second("x, y", "h = self.a.forward(x)\n    return h, torch.mse_loss(h, y)", {{"a", linear(12, 3)}});
    EXPECT_THAT(second.plan(), HasSubstr("loss_output = 1 "));
    second.rig();
}

TEST(OwnModel, ArgumentsWithADefaultAreLeftOut) {
    const OwnModel model("x, scale: float=2.0", "return self.a.forward(x) * scale", {{"a", linear(12, 3)}});
    EXPECT_THAT(model.plan(), HasSubstr("# Left out: scale (float), which has a default.\n"));
    EXPECT_THAT(model.plan(), Not(HasSubstr("\nscale")));
    model.rig();
}

TEST(OwnModel, WhatCannotBeFoundOutIsLeftToFillInByLine) {
    const OwnModel model("x", "return self.a.forward(x.reshape([-1, 7, 11]).mean([1]))", {{"a", linear(11, 3)}});
    EXPECT_THAT(model.plan(), HasSubstr("x = \"float32[11]\"  # FILL IN: a linear layer takes it\n"));
    EXPECT_THAT(model.plan(), HasSubstr("# FILL IN: when forward does not return the loss"));
    EXPECT_THAT(model.notes(), HasSubstr("none of the shapes that were tried fit this model (the first: "));
    EXPECT_THAT(model.first(), HasSubstr("fill in plan.toml at line "));
    const std::string plan = model.plan();
    const auto line = 1 + std::count(plan.begin(), plan.begin() + static_cast<long>(plan.find("x = \"float32")), '\n');
    EXPECT_THAT(model.first(), HasSubstr(", " + std::to_string(line) + "; it cannot run before"));
}

TEST(OwnModel, AForwardWithoutALossIsSaid) {
    const OwnModel model("x", "return torch.argmax(self.a.forward(x), 1)", {{"a", linear(12, 3)}});
    EXPECT_THAT(model.notes(), HasSubstr("forward returns nothing that a loss could be made of\n"));
}

TEST(OwnModel, AModelWithoutAPlaceToCutHasOneStage) {
    const OwnModel model("x, y", "return torch.mse_loss(x, y)", {});
    EXPECT_THAT(model.plan(), HasSubstr("on one rank"));
}

TEST(OwnModel, AModelWithoutParametersIsToBeMendedFirst) {
    const OwnModel model("x", "return torch.linear(x, torch.ones([3, 8]))", {});
    EXPECT_THAT(model.notes(), HasSubstr("the model cannot be used as it is: the model has no parameters"));
    EXPECT_EQ(model.first(), "mend the model, then remove this folder and make it anew");
}

TEST(OwnModel, TargetsWithADefaultAreFedWhereTheyGiveALoss) {
    const std::string scores = "h = self.b.forward(torch.relu(self.a.forward(idx)))\n    ";
    const std::string loss =
        "if targets is None:\n        loss = None\n    else:\n        loss = torch.cross_entropy_loss(torch.flatten(h, "
        "0, 1), torch.flatten(targets), None, 1, -100, 0.0)\n    ";
    const OwnModel model("idx, targets: Optional[Tensor]=None", scores + loss + "return h, torch.argmax(h).to(6), loss",
                         {{"a", embedding(40, 8, 0.02)}, {"b", linear(8, 40)}});
    EXPECT_THAT(model.plan(), HasSubstr("loss_output = 2 ")) << "the scalar that has a gradient";
    EXPECT_THAT(model.plan(), HasSubstr("targets = \"int64[16] < 40\""));
    EXPECT_THAT(model.plan(), Not(HasSubstr("[loss]")));
    EXPECT_THAT(model.plan(), Not(HasSubstr("Left out")));
    EXPECT_EQ(model.rig().prepared.program.training.split.stages.size(), 2U);
    const OwnModel unfit("x, label: Optional[Tensor]=None",
                         "h = self.a.forward(x)\n    if label is not None:\n        h = h + label.view([-1, 7, 11, "
                         "13])\n    return h",
                         {{"a", linear(12, 3)}});
    EXPECT_THAT(unfit.plan(), HasSubstr("# Left out: label (Optional[Tensor]), which has a default.\n"))
        << "nothing fits with it";
    unfit.rig();
}

}  // namespace
}  // namespace vpp
