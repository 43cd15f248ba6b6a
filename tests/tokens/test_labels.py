from turnmill.tokens.labels import IGNORE, labels, loss_weights, per_token


def test_labels_are_the_ids_where_the_weight_is_not_zero():
    assert labels([1, 5, 6, 2], [2, 4], [0.0, 0.5]).tolist() == [IGNORE, IGNORE, 6, 2]


def test_weights_and_kinds_are_one_a_token():
    assert loss_weights([1, 3], [0.0, 2.0]).tolist() == [0.0, 2.0, 2.0]
    assert per_token([2, 3], ["user", "answer"]).tolist() == ["user", "user", "answer"]
