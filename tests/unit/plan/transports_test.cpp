#include "plan/transports.hpp"

#include <gtest/gtest.h>

#include "plan/kind_rows.hpp"
#include "plan/plan.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

TEST(Transports, AreFoundByTheirWord) {
    for (const TransportKind& transport : all_transports()) EXPECT_EQ(&transport_named(transport.kind), &transport);
    EXPECT_NO_THROW(transport_named(MeshPlan{}.transport));
}

TEST(Transports, AWordWithoutARowIsABug) {
    const Error error = test::error_of([] { transport_named("ncll"); });
    EXPECT_EQ(error.kind(), ErrorKind::Bug);
    EXPECT_TRUE(test::holds(error.what(), "every kind has a row")) << error.what();
}

TEST(Transports, AutoIsALinkWherePossibleAndAllElseIsDecided) {
    const auto undecided = [](const TransportKind& row) { return row.links == UsesLinks::WherePossible; };
    EXPECT_EQ(kinds_where(all_transports(), undecided), (std::vector<std::string>{"auto"}));
    const auto links = [](const TransportKind& row) { return row.links == UsesLinks::Yes; };
    EXPECT_EQ(kinds_where(all_transports(), links), (std::vector<std::string>{"nccl"}));
}

TEST(Transports, LinksKeepTheOrderOfTheirMessages) {
    for (const TransportKind& transport : all_transports()) {
        EXPECT_TRUE(transport.keeps_order || transport.links != UsesLinks::Yes) << transport.kind;
    }
}

}  // namespace
}  // namespace vpp
