#include "stage/message.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <random>

#include "device/memory_begin.hpp"
#include "graph/ivalue_tensors.hpp"
#include "support/far_device.hpp"
#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

constexpr size_t kRoom = 1 << 20;

at::Tensor message_numbers(const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    return at::arange(count, at::kFloat).view(shape);
}

/// As another process gets it: in memory of its own.
Buffer copy_of(const Buffer& message) {
    Buffer copy(message.bytes().size());
    std::copy(message.bytes().begin(), message.bytes().end(), copy.bytes().begin());
    return copy;
}

at::Tensor sent(const at::Tensor& tensor) {
    return decode_tensor(copy_of(encode_tensor(tensor, kRoom, "x")), "x").tensor;
}

struct Sample {
    const char* name;
    at::Tensor tensor;
};

std::vector<Sample> samples() {
    const at::Tensor base = message_numbers({4, 6});
    return {{"contiguous", base},
            {"transposed", base.t()},
            {"channels last", message_numbers({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast)},
            {"offset", base.narrow(0, 1, 2)},
            {"offset of an element", base.flatten().narrow(0, 1, 7)},
            {"gaps", base.narrow(1, 1, 3)},
            {"every second", base.slice(1, 0, 6, 2)},
            {"transposed with gaps", base.narrow(1, 1, 3).t()},
            {"expanded", message_numbers({4, 1}).expand({4, 5})},
            {"expanded scalar", at::ones({}).expand({3, 2})},
            {"expanded with gaps", base.narrow(1, 2, 2).unsqueeze(1).expand({4, 3, 2})},
            {"overlapping windows", base.flatten().unfold(0, 4, 2)},
            {"expanded windows", base.flatten().unfold(0, 4, 2).unsqueeze(0).expand({2, 11, 4})},
            {"scalar", at::ones({})},
            {"empty", at::empty({3, 0, 2})},
            {"empty and expanded", at::empty({1, 0}).expand({4, 0})},
            {"dim of one", base.narrow(0, 0, 1).as_strided({1, 6}, {77, 1})},
            {"bool", base > 5},
            {"int64", at::arange(7)},
            {"uint8", at::arange(7).to(at::kByte)},
            {"double", base.to(at::kDouble)},
            {"half", base.to(at::kHalf)},
            {"bfloat16", base.to(at::kBFloat16).t()},
            {"complex", at::view_as_complex(message_numbers({4, 6, 2}))},
            {"conjugate", at::view_as_complex(message_numbers({4, 6, 2})).t().conj()}};
}

TEST(Message, bringsEveryFormOfTensorOverAsItIs) {
    for (const Sample& sample : samples()) {
        const at::Tensor got = sent(sample.tensor);
        EXPECT_EQ(form_of(got), form_of(sample.tensor)) << sample.name;
        EXPECT_EQ(begin_bytes_of(got), begin_bytes_of(sample.tensor)) << sample.name << ": kernels choose by alignment";
        EXPECT_FALSE(got.is_view()) << sample.name << ": autograd treats views apart";
    }
}

TEST(Message, keepsBitsThatAreNoNumbers) {
    at::Tensor odd = at::empty({4}, at::kInt);
    odd[0] = 0x7fc12345, odd[1] = 0x7f800001, odd[2] = static_cast<int>(0x80000000), odd[3] = 1;
    const at::Tensor floats = odd.view(at::kFloat);
    EXPECT_EQ(form_of(sent(floats)), form_of(floats));
}

TEST(Message, sendsExpandedTensorsAsTheirBase) {
    const at::Tensor wide = at::ones({1, 4}).expand({1000, 4});
    EXPECT_LT(encode_tensor(wide, kRoom, "x").bytes().size(), 300u);
}

TEST(Message, keepsTheGradientFlagAndUndefined) {
    const at::Tensor trained = at::ones({2}).set_requires_grad(true);
    EXPECT_TRUE(decode_tensor(encode_tensor(trained, kRoom, "x"), "x").requires_grad);
    EXPECT_FALSE(decode_tensor(encode_tensor(at::ones({2}), kRoom, "x"), "x").requires_grad);
    EXPECT_FALSE(sent(at::Tensor()).defined());
}

TEST(Message, keepsItsMemoryAliveAndApart) {
    const at::Tensor original = message_numbers({8});
    at::Tensor got;
    {
        const Buffer message = encode_tensor(original, kRoom, "x");
        got = decode_tensor(message, "x").tensor;
    }
    got.add_(1);
    EXPECT_EQ(got[7].item<float>(), 8);
    EXPECT_EQ(original[7].item<float>(), 7);
    EXPECT_EQ(begin_bytes_of(got), 0);
}

TEST(Message, aPartBringsEveryFormOfTensorOver) {
    for (const Sample& sample : samples()) {
        const Buffer message = encode_tensor(sample.tensor, kRoom, "x", Contents::Part);
        EXPECT_EQ(message.part().num_bytes > 0, sample.tensor.numel() > 0) << sample.name;
        const at::Tensor got = decode_tensor(message, "x").tensor;
        EXPECT_EQ(form_of(got), form_of(sample.tensor)) << sample.name;
        EXPECT_EQ(begin_bytes_of(got), begin_bytes_of(sample.tensor)) << sample.name;
        EXPECT_FALSE(got.is_view()) << sample.name;
    }
    EXPECT_FALSE(decode_tensor(encode_tensor({}, kRoom, "x", Contents::Part), "x").tensor.defined());
}

// Who else has the memory may write into it while the message is under way.
TEST(Message, aPartIsTheTensorsOwnMemoryOnlyWhenNobodySharesIt) {
    const at::Tensor kept = message_numbers({8});
    const Buffer copied = encode_tensor(kept, kRoom, "x", Contents::Part);
    kept.add_(1);
    EXPECT_EQ(decode_tensor(copied, "x").tensor[7].item<float>(), 7);

    at::Tensor view_of_kept = kept.view({2, 4});
    const void* address = kept.const_data_ptr();
    EXPECT_NE(encode_tensor(view_of_kept, kRoom, "x", Contents::Part).part().data.get(), address);

    at::Tensor alone = at::ones({8});
    address = alone.const_data_ptr();
    EXPECT_EQ(encode_tensor(alone, kRoom, "x", Contents::Part).part().data.get(), address);
}

TEST(Message, aHostPartIsACopyInAnyCase) {
    at::Tensor alone = message_numbers({8});
    const void* address = alone.const_data_ptr();
    const Buffer message = encode_tensor(alone, kRoom, "x", Contents::HostPart);
    EXPECT_NE(message.part().data.get(), address);
    EXPECT_FALSE(message.part().is_on_device);
    const at::Tensor strided = message_numbers({4, 6}).t().slice(0, 1, 5);
    const ReceivedTensor received = decode_tensor(joined(encode_tensor(strided, kRoom, "x", Contents::HostPart)), "x");
    EXPECT_TRUE(at::equal(received.tensor, strided));
    EXPECT_EQ(received.tensor.strides(), strided.strides());
}

// Kernels of a card take numbers of the host apart: they divide by another way.
TEST(Message, aTensorOfTheHostStaysOneWhereOthersAreOfACard) {
    const at::Tensor number = at::tensor(3, at::kLong), far = number.to(test_device());
    EXPECT_TRUE(decode_tensor(copy_of(encode_tensor(number, kRoom, "x")), "x", test_device()).tensor.is_cpu());
    const at::Tensor received = decode_tensor(copy_of(encode_tensor(far, kRoom, "x")), "x", test_device()).tensor;
    EXPECT_EQ(received.device().type(), test_device().type());
    EXPECT_EQ(received.item<int64_t>(), 3);
}

TEST(Message, aSharedPartIsTheTensorsOwnMemoryInAnyCase) {
    const at::Tensor kept = message_numbers({8});
    const Buffer message = encode_tensor(kept, kRoom, "x", Contents::SharedPart);
    EXPECT_EQ(message.part().data.get(), kept.const_data_ptr());
    EXPECT_FALSE(message.part().is_on_device);
    EXPECT_EQ(message.size_bytes(), encode_tensor(kept, kRoom, "x").bytes().size()) << "in bytes it is as long";
    const at::Tensor spread = message_numbers({4, 1}).expand({4, 5});
    EXPECT_EQ(encode_tensor(spread, kRoom, "x", Contents::SharedPart).part().data.get(), spread.const_data_ptr());
    const at::Tensor strided = message_numbers({4, 6}).narrow(1, 1, 3);
    EXPECT_NE(encode_tensor(strided, kRoom, "x", Contents::SharedPart).part().data.get(), strided.const_data_ptr())
        << "its gaps are not sent";
}

// A transport that carries no parts brings bytes over in which the tensor lies as if it had been copied there.
TEST(Message, aPartThatWasJoinedToItsBytesIsRead) {
    for (const Sample& sample : samples()) {
        const at::Tensor got =
            decode_tensor(joined(encode_tensor(sample.tensor, kRoom, "x", Contents::SharedPart)), "x").tensor;
        EXPECT_EQ(form_of(got), form_of(sample.tensor)) << sample.name;
    }
}

TEST(Message, aPartThatIsNotWhatTheHeaderSaysIsRefused) {
    Buffer message = encode_tensor(message_numbers({8}), kRoom, "x", Contents::Part);
    MemoryPart part = message.part();
    part.num_bytes -= 4;
    message.set_part(part);
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { decode_tensor(message, "x"); }), "the message for 'x' does not hold");
    EXPECT_HAS(
        error_of(ErrorKind::Bug, [] { encode_tensor(message_numbers({100}), 300, "blocks.3.out", Contents::Part); }),
        "the value 'blocks.3.out' is sent in");
}

TEST(Message, refusesWhatIsLongerThanItsShapeAllows) {
    const at::Tensor tensor = message_numbers({100});
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { encode_tensor(tensor, 300, "blocks.3.out"); }),
               "the value 'blocks.3.out' is sent in 464 bytes, of 300 that its shape allows");
    EXPECT_EQ(encode_tensor(tensor, kAnySize, "blocks.3.out").size_bytes(), 464U);
    const std::vector<c10::IValue> values{c10::IValue(std::string(500, 'x'))};
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { encode_values(values, 300, "2 plain values"); }), "2 plain values");
}

TEST(Message, refusesTypesThatItDoesNotCarry) {
    EXPECT_THROW(encode_tensor(at::zeros({2}, at::kFloat8_e4m3fn), kRoom, "x"), Error);
}

TEST(Message, aComplexTensorStaysAsItLiesInMemory) {
    const at::Tensor parts = message_numbers({3, 4, 2}) - 7;
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
        const at::Tensor plain = at::view_as_complex(parts.to(type));
        for (const at::Tensor& tensor : {plain, plain.t(), plain.narrow(1, 1, 2), plain.conj(), plain.t().conj()}) {
            for (const Contents contents : {Contents::InBytes, Contents::Part}) {
                const ReceivedTensor got = decode_tensor(encode_tensor(tensor, kRoom, "z", contents), "z");
                EXPECT_TRUE(got.tensor.equal(tensor));
                EXPECT_EQ(got.tensor.scalar_type(), tensor.scalar_type());
                EXPECT_EQ(got.tensor.strides(), tensor.strides());
                EXPECT_EQ(got.tensor.is_conj(), tensor.is_conj());
                EXPECT_FALSE(got.tensor.is_view());
            }
        }
    }
}

TEST(Message, refusesCutOffMessages) {
    const Buffer message = encode_tensor(message_numbers({4, 6}).narrow(1, 1, 3), kRoom, "x");
    for (size_t size = 0; size < message.bytes().size(); ++size) {
        Buffer cut = copy_of(message);
        cut.resize(size);
        EXPECT_THROW(decode_tensor(cut, "x"), Error) << size;
    }
}

// Every header byte set to every kind of value: an error, or a tensor within the message's own memory.
TEST(Message, survivesDamagedHeaders) {
    std::mt19937_64 random(7);
    int refused = 0;
    for (const Sample& sample : samples()) {
        const Buffer message = encode_tensor(sample.tensor, kRoom, "x");
        const size_t header =
            std::min<size_t>(message.bytes().size(), 24 + 24 * static_cast<size_t>(sample.tensor.dim()));
        for (size_t position = 0; position < header; ++position) {
            for (int value : {0, 1, 2, 0x7f, 0x80, 0xff, static_cast<int>(random() % 256)}) {
                Buffer damaged = copy_of(message);
                damaged.bytes()[position] = static_cast<std::byte>(value);
                try {
                    const at::Tensor tensor = decode_tensor(damaged, "x").tensor;
                    if (tensor.defined() && tensor.numel() < 1000000) tensor.clone();
                } catch (const Error&) {
                    ++refused;
                }
            }
        }
    }
    EXPECT_GT(refused, 5000);
}

TEST(Message, refusesSizesThatReachBehindItsMemory) {
    Buffer message = copy_of(encode_tensor(message_numbers({4, 1}).expand({4, 5}), kRoom, "x"));
    const int64_t many = 50;  // the first size; its base size stays 4
    std::memcpy(message.bytes().data() + 24, &many, sizeof many);
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { decode_tensor(message, "x"); }), "the message for 'x' does not hold");
}

std::vector<c10::IValue> sent(const std::vector<c10::IValue>& values) {
    return decode_values(copy_of(encode_values(values, kRoom, "values")));
}

TEST(Message, bringsPlainValuesOver) {
    const auto got = sent(std::vector<c10::IValue>{c10::IValue(int64_t{-5}), c10::IValue(0.1), c10::IValue(true),
                                                   c10::IValue(), c10::IValue(std::string("text")),
                                                   c10::IValue(c10::List<int64_t>({1, 2})), c10::IValue(at::kCPU)});
    ASSERT_EQ(got.size(), 7u);
    EXPECT_EQ(got[0].toInt(), -5);
    EXPECT_EQ(got[1].toDouble(), 0.1);
    EXPECT_TRUE(got[2].toBool());
    EXPECT_TRUE(got[3].isNone());
    EXPECT_EQ(got[4].toStringRef(), "text");
    EXPECT_EQ(got[5].toIntVector(), (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(got[6].toDevice(), at::Device(at::kCPU));
}

/// An op that makes a tensor "where x is" would make it on the sender's card.
TEST(Message, namesTheReceiversCardInPlaceOfTheSenders) {
    const at::Device theirs(at::kCUDA, 1), own(at::kCUDA, 0);
    const auto pair = c10::ivalue::Tuple::create({c10::IValue(theirs), c10::IValue(at::Device(at::kCPU))});
    const auto got = decode_values(copy_of(encode_values({c10::IValue(theirs), pair}, kRoom, "values")), own);
    EXPECT_EQ(got[0].toDevice(), own);
    EXPECT_EQ(got[1].toTupleRef().elements()[0].toDevice(), own);
    EXPECT_EQ(got[1].toTupleRef().elements()[1].toDevice(), at::Device(at::kCPU));
}

TEST(Message, bringsNothingForAValueThatNobodyMayRead) {
    const auto got = sent({c10::IValue::uninitialized(), c10::IValue(int64_t{3})});
    ASSERT_EQ(got.size(), 2u);
    EXPECT_TRUE(got[0].isNone());
    EXPECT_EQ(got[1].toInt(), 3);
}

TEST(Message, leavesTensorsOutThatAreNotThere) {
    const auto attention = c10::ivalue::Tuple::create({at::ones({2}), at::Tensor(), at::ones({3})});
    const auto got = sent({c10::IValue(attention), c10::IValue(at::Tensor())});
    ASSERT_EQ(got.size(), 2u);
    const auto& elements = got[0].toTupleRef().elements();
    EXPECT_TRUE(elements[0].toTensor().defined());
    EXPECT_FALSE(elements[1].toTensor().defined());
    EXPECT_TRUE(elements[2].toTensor().defined());
    EXPECT_TRUE(got[1].isTensor());
    EXPECT_FALSE(got[1].toTensor().defined());
}

TEST(Message, keepsContainersWithTheirTypesAndLeavesTensorsOpen) {
    const c10::List<at::Tensor> list({at::ones({1000}), at::ones({1})});
    c10::Dict<std::string, at::Tensor> dict;
    dict.insert("a", at::ones({1000}));
    const auto nested = c10::ivalue::Tuple::create({c10::IValue(list), c10::IValue(int64_t{3})});
    const Buffer message = encode_values({c10::IValue(nested), c10::IValue(dict)}, kRoom, "values");
    EXPECT_LT(message.bytes().size(), 2000u) << "tensors travel by themselves";
    const auto got = decode_values(copy_of(message));
    EXPECT_EQ(tensors_in(got[0]).size(), 2u);
    EXPECT_TRUE(got[0].toTupleRef().elements()[0].isTensorList()) << "an op that wants List[Tensor] gets one";
    EXPECT_EQ(got[1].toGenericDict().keyType()->str(), "str");
    EXPECT_EQ(got[1].toGenericDict().valueType()->str(), "Tensor");
}

TEST(Message, refusesDamagedValues) {
    const Buffer message = encode_values({c10::IValue(int64_t{5}), c10::IValue(std::string("text"))}, kRoom, "values");
    for (size_t size = 0; size < message.bytes().size(); ++size) {
        Buffer cut = copy_of(message);
        cut.resize(size);
        EXPECT_THROW(decode_values(cut), Error) << size;
    }
    // The length that wraps around: 64 - 48 bytes behind the end of a message of 16.
    Buffer wrapped = copy_of(message);
    wrapped.resize(16);
    const uint64_t length = uint64_t{0} - 48;
    std::memcpy(wrapped.bytes().data(), &length, sizeof length);
    EXPECT_THROW(decode_values(wrapped), Error);
    Buffer tables = copy_of(message);
    const uint64_t many = uint64_t{1} << 60;
    std::memcpy(tables.bytes().data() + 8, &many, sizeof many);
    EXPECT_THROW(decode_values(tables), Error);
}

}  // namespace
}  // namespace vpp::test
