-- All bids, with the minute that they are in, by which they can be filed.
-- NEXMark, Query 10, as nexmark/nexmark puts it for Flink, which writes a directory for each minute: so does a sink that
-- is PARTITIONED BY (minute), and marks each by the file _SUCCESS once it is complete.
-- Nothing is kept, and every punctuation goes on; heartbeats (bid.dateTime) say of which minutes no bid follows, so that
-- the file of a minute is complete.
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT auction, bidder, price, dateTime, extra, window.start AS minute
FROM (SELECT *, window(dateTime, '1 minute') AS window FROM bid);
