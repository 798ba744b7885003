#include "data/npy.hpp"

#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::npy;
using test::raw;
using test::TemporaryFolder;

std::string npy_refusal(const std::string& bytes) {
    const TemporaryFolder folder;
    const std::string path = folder.write("a.npy", bytes);
    const std::string text = error_of(ErrorKind::BadData, [&] { NpyFile file(path); });
    EXPECT_HAS(text, path);
    return text;
}

std::string header_refusal(const std::string& header) {
    return error_of(ErrorKind::BadData, [&] { parse_npy_header(header, "a.npy"); });
}

TEST(Npy, ReadsAllVersions) {
    const TemporaryFolder folder;
    for (char version : {1, 2, 3}) {
        const NpyFile file(folder.write("a.npy", npy("<f4", "(2, 1)", raw<float>({1.5F, -2}), "False", version)));
        EXPECT_EQ(file.dtype(), DType::F32);
        EXPECT_EQ(file.shape(), (std::vector<int64_t>{2, 1}));
        ASSERT_EQ(file.data_bytes(), 8U);
        EXPECT_EQ(test::float_at(file, 1), -2.0F);
    }
}

TEST(Npy, KnowsEveryDtype) {
    const std::vector<std::pair<std::string, DType>> rows{{"<f4", DType::F32}, {"<f8", DType::F64}, {"<f2", DType::F16},
                                                          {"<i8", DType::I64}, {"<i4", DType::I32}, {"<i2", DType::I16},
                                                          {"|i1", DType::I8},  {"|u1", DType::U8},  {"<u2", DType::U16},
                                                          {"<u4", DType::U32}, {"|b1", DType::Bool}};
    for (const auto& [descr, dtype] : rows) {
        const std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (), }";
        EXPECT_EQ(parse_npy_header(header, "a.npy").dtype, dtype) << descr;
    }
}

TEST(Npy, ShapesAndSpellings) {
    const auto shape_of = [](const std::string& shape) {
        return parse_npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}", "a.npy").shape;
    };
    EXPECT_EQ(shape_of("()"), std::vector<int64_t>{});
    EXPECT_EQ(shape_of("(3,)"), std::vector<int64_t>{3});
    EXPECT_EQ(shape_of("( 3 , 0,4 )"), (std::vector<int64_t>{3, 0, 4}));
    const NpyHeader other =
        parse_npy_header("{\"shape\":(2,),\"descr\":\"|u1\",\"fortran_order\":False}   \n", "a.npy");
    EXPECT_EQ(other.dtype, DType::U8);
}

TEST(Npy, RefusesWithARemedy) {
    EXPECT_HAS(npy_refusal(npy("<f4", "(1,)", raw<float>({1}), "True")),
               ": Fortran order is not read; try np.save of np.ascontiguousarray(array)");
    EXPECT_HAS(npy_refusal(npy("|O", "(1,)", "pickle")),
               ": arrays of Python objects are not read; try np.save of array.astype('float32')");
    EXPECT_HAS(npy_refusal(npy(">f4", "(1,)", raw<float>({1}))),
               ": big-endian values are not read (got '>f4'); try array.astype('<f4')");
    EXPECT_HAS(npy_refusal(npy(">i8", "(1,)", raw<int64_t>({1}))), "(got '>i8'); try array.astype('<i8')");
    EXPECT_HAS(npy_refusal(npy(">u8", "(1,)", raw<int64_t>({1}))), "(got '>u8'); try array.astype('<i8')");
    EXPECT_HAS(npy_refusal(npy(">f16", "(1,)", raw<double>({1, 2}))), "(got '>f16'); try array.astype('<f4')");
    EXPECT_HAS(npy_refusal(npy("<u8", "(1,)", raw<int64_t>({1}))),
               ": unknown dtype (got '<u8', expected f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 or bool); "
               "try array.astype('int64')");
    EXPECT_HAS(npy_refusal(npy("<M8[ns]", "(1,)", raw<int64_t>({1}))), "try array.astype('int64')");
    EXPECT_HAS(npy_refusal(npy("", "(1,)", "")), "unknown dtype (got ''");
    EXPECT_HAS(npy_refusal(npy("<c8", "(1,)", raw<double>({1}))),
               ": unknown dtype (got '<c8', expected f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 or bool); "
               "try array.astype('float32')");
    EXPECT_HAS(npy_refusal(npy("<U3", "(1,)", "abcabcabcabc")), "unknown dtype");
    EXPECT_HAS(npy_refusal(npy("|f4", "(1,)", raw<float>({1}))), "unknown dtype");
    EXPECT_EQ(header_refusal("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}"),
              "a.npy: structured arrays are not read; try one .npy file for each field");
}

TEST(Npy, RefusesDamagedHeaders) {
    std::string many;
    for (int i = 0; i < 33; ++i) many += "1,";
    const std::string begin = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    const std::vector<std::pair<std::string, std::string>> cases{
        {"", "a '{' is missing"},
        {"{", "a text is missing"},
        {"{}", "descr, fortran_order or shape is not there"},
        {"[]", "a '{' is missing"},
        {"{'descr': '<f4'}", "descr, fortran_order or shape is not there"},
        {"{'descr: '<f4'}", "a ':' is missing"},
        {"{'descr", "a text does not end"},
        {"{'descr' '<f4'}", "a ':' is missing"},
        {"{'descr': '<f4', 'fortran_order': Perhaps, 'shape': (1,)}", "fortran_order is neither True nor False"},
        {begin + "-1,)}", "the shape is not a possible one"},
        {begin + "1.5,)}", "a ')' is missing"},
        {begin + "99999999999999999999,)}", "the shape is not a possible one"},
        {begin + many + ")}", "the shape is not a possible one"},
        {begin + "1,)", "a '}' is missing"},
        {begin + "1 2)}", "a ')' is missing"},
        {begin + "1,), 'more': 1}", "an entry is unknown or doubled (got 'more')"},
        {"{'descr': '<f4', 'descr': '<f4'}", "an entry is unknown or doubled (got 'descr')"},
        {begin + "1,)} x", "something follows it"},
    };
    for (const auto& [header, what] : cases) {
        EXPECT_EQ(header_refusal(header), "a.npy: the .npy header is damaged: " + what + "; try np.save again");
    }
}

TEST(Npy, TheShapeMustBeTheFileSize) {
    const std::string data = raw<float>({1, 2, 3, 4});
    EXPECT_HAS(npy_refusal(npy("<f4", "(5,)", data)), "got shape [5] of float32, and 16 bytes of data");
    EXPECT_HAS(npy_refusal(npy("<f4", "(3,)", data)), "does not fit the file");
    EXPECT_HAS(npy_refusal(npy("<f4", "(2, 3)", data)), "does not fit the file");
    EXPECT_HAS(npy_refusal(npy("<f8", "(4,)", data)), "does not fit the file");
    EXPECT_HAS(npy_refusal(npy("<f4", "(0,)", data)), "does not fit the file");
    EXPECT_HAS(npy_refusal(npy("<f4", "(4,)", "")), "does not fit the file");
    // Products that wrap around to the right number.
    EXPECT_HAS(npy_refusal(npy("<f4", "(4611686018427387905, 4)", data)), "does not fit the file");
    EXPECT_HAS(npy_refusal(npy("<f4", "(4294967296, 4294967296, 4)", data)), "does not fit the file");
}

TEST(Npy, EveryTruncationIsRefused) {
    const TemporaryFolder folder;
    const std::string whole = npy("<i8", "(2,)", raw<int64_t>({1, 2}));
    EXPECT_NO_THROW(NpyFile(folder.write("a.npy", whole)));
    for (size_t size = 0; size < whole.size(); ++size) {
        EXPECT_THROW(NpyFile(folder.write("a.npy", whole.substr(0, size))), Error) << size;
    }
}

TEST(Npy, EveryDamagedHeaderByteIsAnErrorOrStillFits) {
    const TemporaryFolder folder;
    const std::string whole = npy("<i8", "(2,)", raw<int64_t>({1, 2}));
    for (size_t at = 0; at + 16 < whole.size(); ++at) {
        for (const char value : {'\0', '\x01', '\x7f', '\xff', '9', '(', '\''}) {
            std::string damaged = whole;
            damaged[at] = value;
            try {
                const NpyFile file(folder.write("a.npy", damaged));
                EXPECT_EQ(num_elements(file.shape()) * static_cast<int64_t>(size_of(file.dtype())), 16);
            } catch (const Error& error) {
                EXPECT_EQ(error.kind(), ErrorKind::BadData) << error.what();
            }
        }
    }
}

TEST(Npy, MagicVersionAndLengthAreChecked) {
    EXPECT_HAS(npy_refusal("PK\x03\x04 a zip, as .npz is"),
               ": not a .npy file: the first bytes are not NumPy's; try np.save");
    EXPECT_HAS(npy_refusal(npy("<f4", "(1,)", raw<float>({1}), "False", 4)),
               ": unknown .npy version (got 4, expected 1, 2 or 3)");
    EXPECT_HAS(npy_refusal("\x93NUMPY\x01"), ": the .npy header is cut short; copy the file anew");
    EXPECT_HAS(npy_refusal(npy("<f4", "(1,)", "").substr(0, 30)), ": the .npy header is cut short; copy the file anew");
    std::string huge = npy("<f4", "(1,)", raw<float>({1}), "False", 2);
    huge[11] = '\x7f';
    EXPECT_HAS(npy_refusal(huge), ": the .npy header is too long (got 2130706550 bytes, expected at most 10000)");
    const TemporaryFolder folder;
    error_of(ErrorKind::MissingInput, [&] { NpyFile file(folder.path("missing.npy")); });
}

}  // namespace
}  // namespace vpp
