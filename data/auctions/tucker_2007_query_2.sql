-- The closing price of each item: its highest bid, from two streams of bids.
-- Tucker et al. 2007, Query 2.
-- Closed auctions (bid.auction), once both streams say so, close the group of the bids, and the join forgets the item;
-- a price waits in the join until its item is there (auction.id is unique).
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,
  expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/auction.xml', rowTag 'auction',
  schemes 'id; seller; dateTime prefix', maxBytesPerSlice '55m');

CREATE TABLE bid1 (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid1.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '160m');

CREATE TABLE bid2 (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid2.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '160m');

SELECT A.id, A.itemName, B.close
FROM auction A, (
  SELECT auction, MAX(price) AS close
  FROM (SELECT * FROM bid1 UNION SELECT * FROM bid2)
  GROUP BY auction
) B
WHERE A.id = B.auction;
