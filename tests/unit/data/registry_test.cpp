#include "plan/data_rules.hpp"
#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;

TEST(Registry, ListsTheKinds) {
    EXPECT_EQ(dataset_kinds(), (std::vector<std::string>{"tokens", "text", "arrays", "idx", "cifar10", "synthetic"}));
}

TEST(Registry, TheRulesOfAPlanHaveARowForEachKind) {
    EXPECT_EQ(dataset_kinds(), kinds_of_data_rules()) << "a kind has a row in plan/data_rules.cpp too";
}

TEST(Registry, EveryListedKindHasAnOpener) {
    for (const std::string& kind : dataset_kinds()) {
        Plan plan;
        plan.data.kind = kind;
        // An empty plan has no data of any kind: the opener itself says what is missing, with the kind's name.
        const std::string text = error_of(ErrorKind::Plan, [&] { open_dataset(plan, Subset::Train); });
        EXPECT_HAS(text, "data.kind " + kind + " needs");
    }
}

TEST(Registry, AnUnknownKindIsAPlanErrorWithItsPlace) {
    Plan plan;
    plan.data.kind = "tokesn";
    plan.positions["data.kind"] = {"plan.toml", 9, 8, "kind = \"tokesn\""};
    const std::string text = error_of(ErrorKind::Plan, [&] { open_dataset(plan, Subset::Train); });
    EXPECT_HAS(text, "plan.toml:9:8: unknown data.kind (got 'tokesn', expected one of tokens, text,");
    EXPECT_HAS(text, "did you mean 'tokens'?");
}

TEST(Registry, ASampleWithoutAFileIsNamedByItsNumber) {
    class Bare : public Dataset {
      public:
        const Fields& fields() const override { return fields_; }
        void read(int64_t, int, std::span<std::byte>) const override {}
        std::string digest() const override { return ""; }

      private:
        Fields fields_;
    };
    EXPECT_EQ(Bare().where(7, 0), "sample 7");
}

}  // namespace
}  // namespace vpp
