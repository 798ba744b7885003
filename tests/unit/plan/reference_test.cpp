#include "plan/reference.hpp"

#include <gtest/gtest.h>

#include "plan/key_facts.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::built_names;
using test::holds;

TEST(Reference, HasEveryKeyAndSectionWithItsSentence) {
    const std::string page = reference_page(built_names());
    for (const Key& key : all_keys()) EXPECT_TRUE(holds(page, "\n### `" + key.name + "`\n\n")) << key.name;
    for (const auto& [section, sentence] : all_sections()) {
        EXPECT_TRUE(holds(page, "\n## `" + section_header(section) + "`\n\n")) << section;
    }
    EXPECT_EQ(page, reference_page(built_names()));
}

TEST(Reference, AKeyReadsLikeThis) {
    const std::string page = reference_page(built_names());
    EXPECT_TRUE(holds(page,
                      "### `pipeline.mode`\n\nCut the graph of one model, or join a module per stage.\n\n"
                      "- type: word\n- default: `\"GRAPH_EAGER\"`\n- words: `GRAPH_EAGER`, `MANUAL_EAGER`\n"
                      "- example: `mode = \"GRAPH_EAGER\"`\n"));
    EXPECT_TRUE(holds(page, "- default: runs/\\<plan's name>\n"));
    EXPECT_TRUE(holds(page, "```toml\n[[optimizer.group]]\nmatch = [\"*.bias\", \"*ln*\"]\n```\n"));
    EXPECT_TRUE(holds(page, "- [`[[pipeline.stage]]`](#pipelinestage): "));
}

TEST(Reference, OtherWordsAreAnotherPage) {
    Names more = built_names();
    more.optimizers.push_back("lion");
    EXPECT_NE(reference_page(more), reference_page(built_names()));
}

}  // namespace
}  // namespace vpp
