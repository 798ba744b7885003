// How many targets a loss counts: made from the data as forward makes them.
#include "engine/target_count.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "unit/graph/models.hpp"

namespace vpp::test {
namespace {

/// Four targets a sample: sample 0 has none that count, sample 1 the first two, sample 2 all. The mask hides the
/// second.
class Masked final : public Dataset {
  public:
    const Fields& fields() const override { return fields_; }
    void read(int64_t sample, int field, std::span<std::byte> out) const override {
        static constexpr int64_t kTargets[][4] = {{-100, -100, -100, -100}, {4, 1, -100, -100}, {2, 3, 0, 1}};
        static constexpr int64_t kMask[] = {1, 0, 1, 1};
        static constexpr uint8_t kBytes[] = {1, 156, 1, 1};
        ASSERT_NE(field, 0) << "scores are not read";
        if (field == 3) return std::memcpy(out.data(), kBytes, out.size()), void();
        std::memcpy(out.data(), field == 1 ? kTargets[sample] : kMask, out.size());
    }
    std::string digest() const override { return ""; }

  private:
    Fields fields_{
        {{"x", DType::F32, {4, 5}}, {"y", DType::I64, {4}}, {"mask", DType::I64, {4}}, {"bytes", DType::U8, {4}}}, 3};
};

const std::vector<Draw> kNone{{0}, {0}}, kAll{{0}, {1}, {2}};

/// forward(self, x, y, mask, bytes), whose loss is that of the targets that the code makes.
LoadedModel with_targets(const std::string& code) {
    TorchScriptOptions options;
    options.fields = Masked().fields();
    return load({"Model",
                 "def forward(self, x, y, mask, bytes):\n    " + code +
                     "\n    return torch.cross_entropy_loss(x.flatten(0, 1), t.flatten(), None, 2, -100)\n",
                 {{"w", weight({5})}}},
                options);
}

int64_t count_of(const std::string& code, std::span<const Draw> samples = kAll) {
    const Masked data;
    LoadedModel model = with_targets(code);
    const auto count = TargetCount::of(model.graph, *model.source, data);
    if (!count) return -1;
    const Loader loader(data, model.graph);
    const auto in_twos = static_cast<int>((samples.size() + 1) / 2);
    return count->in(in_twos, [&](int microbatch, int input) {
        const std::span<const Draw> left = samples.subspan(2 * static_cast<size_t>(microbatch));
        return loader.load(input, left.first(std::min<size_t>(2, left.size())));
    });
}

TEST(TargetCount, IsOfAllButIgnoreIndex) {
    EXPECT_EQ(count_of("t = y"), 6);
    EXPECT_EQ(count_of("t = y", kNone), 0);
    EXPECT_EQ(count_of("t = y", {}), 0);
    EXPECT_EQ(count_of("t = bytes"), 12) << "no byte is -100";
}

TEST(TargetCount, FollowsWhatForwardMakesOfTheData) {
    EXPECT_EQ(count_of("t = torch.cat([y[:, 1:], torch.full([y.size(0), 1], -100, dtype=4)], 1)"), 4);
    EXPECT_EQ(count_of("t = torch.constant_pad_nd(y, [0, 1], -100)[:, 1:].contiguous()"), 4);
    EXPECT_EQ(count_of("t = y.masked_fill(mask == 0, -100)"), 4);
    EXPECT_EQ(count_of("t = torch.where(mask == 1, y, -100)"), 4);
    EXPECT_EQ(count_of("t = y.clone()\n    t[mask == 0] = -100"), 4) << "written in place";
    EXPECT_EQ(count_of("t = y.clone()\n    u = t.view(-1)\n    u.masked_fill_(mask.view(-1) == 0, -100)"), 4)
        << "through a view";
}

TEST(TargetCount, IsNoneOfTargetsThatDoNotComeFromDataAlone) {
    EXPECT_EQ(count_of("t = torch.argmax(x * self.w, 2)"), -1) << "a weight";
    EXPECT_EQ(count_of("t = y + torch.randint(0, 1, [1])"), -1) << "a random number";
    EXPECT_EQ(count_of("t = y.clone()\n    t.masked_fill_(torch.argmax(x * self.w, 2) == 0, -100)"), -1)
        << "written with what weights say";
}

TEST(TargetCount, TellsWhereNoneCounts) {
    const Masked data;
    LoadedModel model = with_targets("t = y");
    const auto count = TargetCount::of(model.graph, *model.source, data);
    ASSERT_TRUE(count.has_value());
    EXPECT_EQ(count->all_ignored_text(kNone), "all targets there are ignore_index (-100), and a mean of none is NaN");
    EXPECT_EQ(count->all_ignored_text(kAll), "");
}

}  // namespace
}  // namespace vpp::test
