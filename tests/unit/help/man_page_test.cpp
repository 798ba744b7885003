#include "help/man_page.hpp"

#include <gtest/gtest.h>

#include "unit/help/command_tree.hpp"

namespace vpp {
namespace {

const ManualFacts kFacts = {
    "0.1.0", "It trains. C:\\x", {{0, "done"}, {78, "plan error"}}, {{"NO_COLOR", "no colours"}}, {}};

bool page_holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(ManPage, HasTheSectionsThatPeopleLookFor) {
    const std::string page = man_page(test::small_program(), kFacts);
    size_t at = 0;
    for (const char* section :
         {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXIT STATUS", "ENVIRONMENT", "SEE ALSO"}) {
        const size_t found = page.find(std::string("\n.SH ") + section + '\n', at);
        ASSERT_NE(found, std::string::npos) << section;
        at = found;
    }
    EXPECT_FALSE(page_holds(page, ".SH FILES")) << "a section without entries";
    EXPECT_TRUE(page_holds(page, "\n.SH NAME\nvpp \\- trains models: the same bits\n")) << "as lexgrog(1) wants it";
}

TEST(ManPage, ACommandReadsLikeThis) {
    EXPECT_TRUE(page_holds(man_page(test::small_program(), kFacts),
                           ".SS \"vpp schedule check [OPTIONS] FILE...\"\n"
                           "prove that files are sound.\n"
                           ".TP\n\\fIFILE\\fR\nthe file.\n"
                           ".TP\n\\fB\\-\\-out\\fR \\fIDIR\\fR\nwhere to write.\n"
                           ".TP\n\\fB\\-\\-json\\fR\nthe result as JSON.\n"
                           ".PP\n.RS 4\n.EX\nvpp schedule check a.csv\n.EE\n.RE\n"));
    EXPECT_TRUE(page_holds(man_page(test::small_program(), kFacts), ".TP\n\\fB78\\fR\nplan error.\n"));
}

TEST(ManPage, TextCannotSteerTheFormatter) {
    CommandPage root = test::small_program();
    root.commands[0].sentence = ".so /etc/passwd";
    root.commands[0].options[3].sentence = "'br \\n";
    const std::string page = man_page(root, kFacts);
    EXPECT_TRUE(page_holds(page, "\n\\&.so /etc/passwd.\n"));
    EXPECT_TRUE(page_holds(page, "\n\\&'br \\en.\n"));
    EXPECT_TRUE(page_holds(page, "It trains. C:\\ex\n"));
    EXPECT_EQ(page, man_page(root, kFacts)) << "no date";
}

}  // namespace
}  // namespace vpp
