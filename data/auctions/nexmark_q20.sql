-- Every bid with its auction, in category 10.
-- NEXMark, Query 20, as nexmark/nexmark puts it for Flink.
-- An auction is kept until the bids on it are closed (bid.auction), a bid until its auction has come (auction.id is
-- unique). No watermark bounds this join: an auction may be open for any time.
-- Verdict, followed: answers at once, keeps what is open.

CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,
  expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/auction.xml', rowTag 'auction',
  schemes 'id; seller; dateTime prefix', maxBytesPerSlice '55m');

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT auction, bidder, price, channel, url, B.dateTime AS bid_dateTime, B.extra AS bid_extra,
       itemName, description, initialBid, reserve, A.dateTime AS auction_dateTime, expires, seller, category,
       A.extra AS auction_extra
FROM bid B INNER JOIN auction A ON B.auction = A.id
WHERE A.category = 10;
