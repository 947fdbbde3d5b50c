-- All bids, with what a table says of their auctions.
-- NEXMark, Query 13, as nexmark/nexmark puts it for Flink; its table of ten thousand values has a hundred here.
-- The table does not change, and is read once. Of bids nothing is kept; every punctuation goes on that the join lets pass.
-- Verdict, followed: answers at once, keeps finitely much.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

CREATE TABLE side_input (key BIGINT, value STRING) USING csv OPTIONS (path 'data/auctions/side_input.csv', header 'true');

SELECT B.auction, B.bidder, B.price, B.dateTime, S.value
FROM (SELECT *, MOD(auction, 100) AS key FROM bid) B JOIN side_input S ON B.key = S.key;
